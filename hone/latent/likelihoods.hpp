#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/latent/likelihood/bernoulli.hpp"
#include "hone/latent/likelihood/categorical.hpp"
#include "hone/latent/likelihood/gaussian.hpp"
#include "hone/latent/likelihood/gaussian_learned.hpp"
#include "hone/latent/likelihood/negative_binomial.hpp"
#include "hone/latent/likelihood/poisson.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

template <class... Each>
struct LikelihoodList {
  static constexpr int size = sizeof...(Each);
  template <class F>
  static constexpr void visit(F f) {
    (f(Each()), ...);
  }
};

// The table of likelihoods. To add one, write its file, name it in Density and here.
using Likelihoods = LikelihoodList<Bernoulli, Gaussian, Poisson, GaussianLearned, Categorical, NegativeBinomial>;

constexpr LikelihoodFacts facts_of(Density density) {
  LikelihoodFacts found = Bernoulli::facts;
  Likelihoods::visit([&](auto each) {
    if (each.density == density) found = each.facts;
  });
  return found;
}

// Calls f with the likelihood of this density.
template <class F>
void with_likelihood(Density density, F f) {
  Likelihoods::visit([&](auto each) {
    if (each.density == density) f(each);
  });
}

// Outputs of a decoder, and items of a datum.
constexpr int outputs_of(Density density, const LikelihoodShape& shape) {
  return facts_of(density).outputs * shape.pixels;
}
constexpr int items_of(Density density, const LikelihoodShape& shape) {
  return facts_of(density).grouped ? shape.pixels / shape.categories : shape.pixels;
}

// E[x | a] (pixels) of a decoder's outputs.
void likelihood_mean(Density density, const LikelihoodShape& shape, std::span<const double> a, std::span<double> out);
// x ~ p(x | a), from one number of noise per item.
void likelihood_draw(Density density, const LikelihoodShape& shape, std::span<const double> a,
                     std::span<const double> noise, std::span<double> x);
// Throws DataError that names the first datum and position at which data do not suit the likelihood. A NaN suits it if
// missing values are ignored. Messages count data from `first`, where the data are a part of others.
void check_data(Density density, const LikelihoodShape& shape, Missing missing, const DataSet& data, int first = 0);
// Throws DataError that names the first number too large for float32 and the likelihood. An engine survives such data,
// but their model would be useless.
void check_scale(Density density, const DataSet& data, int first = 0);

}  // namespace hone
