#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/target/posterior.hpp"
#include "hone/target/target.hpp"

namespace hone {

/// A density of your own: takes a point, writes the gradient of the log density there and returns the log density. It
/// may be called from several threads at once. An exception means that the point lies outside the support.
template <class F>
concept LogDensity = requires(const F& f, std::span<const double> z, std::span<double> gradient) {
  { f(z, gradient) } -> std::convertible_to<double>;
};

/// Such a callable as a target:
///
///     DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) { … });
template <LogDensity F>
class DensityTarget final : public Target {
 public:
  /// Throws InputError if the dimension is not positive.
  DensityTarget(int dimension, F density) : dimension_(dimension), density_(std::move(density)) {
    if (dimension < 1) throw InputError("the dimension of a density must be at least 1");
  }
  int dimension() const override { return dimension_; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    // The callable always writes a gradient. The memory is moved out while in use: a density may call another one.
    thread_local std::vector<double> spare;
    std::vector<double> unwanted;
    if (!wants_gradient(want)) {
      unwanted = std::exchange(spare, {});
      unwanted.resize(dimension_);
    }
    for (int chain = 0; chain < z.cols(); ++chain) {
      const std::span<double> at_chain = wants_gradient(want) ? gradient.column(chain) : std::span<double>(unwanted);
      double result = -std::numeric_limits<double>::infinity();
      try {
        result = density_(z.column(chain), at_chain);
      } catch (const std::exception&) {
        std::fill(at_chain.begin(), at_chain.end(), 0.0);
      }
      if (wants_value(want)) value[chain] = result;
    }
    if (!wants_gradient(want)) spare = std::move(unwanted);
  }

 private:
  int dimension_;
  F density_;
};

/// A callable that writes the natural-scale values of a point z, transformed parameters included. It may be called from
/// several threads at once. An exception means that the point has no such values.
template <class C>
concept Constrain = requires(const C& c, std::span<const double> z, std::span<double> natural) {
  c(z, natural);
};

/// The posterior that make_posterior makes.
template <LogDensity F, Constrain C>
class DensityPosterior final : public Posterior {
 public:
  /// `coordinates` names the D entries of z, `names` the values that `to_natural` writes. The first `parameters` of
  /// them are the model's parameters. Throws InputError if there are no names, or fewer than parameters.
  DensityPosterior(F density, C to_natural, std::vector<std::string> coordinates, std::vector<std::string> names,
                   std::size_t parameters)
      : target_(static_cast<int>(coordinates.size()), std::move(density)),
        constrain_(std::move(to_natural)),
        coordinates_(std::move(coordinates)),
        names_(std::move(names)),
        parameters_(parameters) {
    if (names_.empty()) throw InputError("a posterior needs at least one named value");
    if (parameters_ > names_.size()) throw InputError("a posterior has more parameters than named values");
  }
  int dimension() const override { return target_.dimension(); }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& coordinate_names() const override { return coordinates_; }
  std::size_t parameter_count() const override { return parameters_; }
  void constrain(std::span<const double> z, std::span<double> natural) const override {
    try {
      constrain_(z, natural);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(error.what());
    }
  }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    target_.evaluate(z, want, value, gradient);
  }

 private:
  DensityTarget<F> target_;
  C constrain_;
  std::vector<std::string> coordinates_, names_;
  std::size_t parameters_;
};

/// The posterior of a density over all of R^D whose coordinates are the parameters themselves, one name each.
template <LogDensity F>
std::unique_ptr<Posterior> make_posterior(F density, std::vector<std::string> names) {
  const auto same = [](std::span<const double> z, std::span<double> natural) {
    std::copy(z.begin(), z.end(), natural.begin());
  };
  const std::size_t count = names.size();
  return std::make_unique<DensityPosterior<F, decltype(same)>>(std::move(density), same, names, names, count);
}

/// The posterior of a density over unconstrained coordinates, with natural-scale values that `constrain` computes. The
/// density includes the log Jacobian of the transform.
template <LogDensity F, Constrain C>
std::unique_ptr<Posterior> make_posterior(F density, std::vector<std::string> coordinates,
                                          std::vector<std::string> names, C constrain) {
  const std::size_t count = names.size();
  return std::make_unique<DensityPosterior<F, C>>(std::move(density), std::move(constrain), std::move(coordinates),
                                                  std::move(names), count);
}

/// The same if only the first `parameters` of the names are the model's parameters.
template <LogDensity F, Constrain C>
std::unique_ptr<Posterior> make_posterior(F density, std::vector<std::string> coordinates,
                                          std::vector<std::string> names, C constrain, std::size_t parameters) {
  return std::make_unique<DensityPosterior<F, C>>(std::move(density), std::move(constrain), std::move(coordinates),
                                                  std::move(names), parameters);
}

/// A coordinate in which a gradient is not the derivative of the value, by far.
struct WrongGradient {
  int coordinate = 0;     ///< which one, from 0
  double given = 0;       ///< the target's gradient there
  double difference = 0;  ///< the central difference of the value
};

/// Compares the gradient of `target` at a point with differences of its value, in at most 20 coordinates, and returns
/// the worst of those that are grossly wrong: of the other sign, or off by a factor of 1.7 or more. Sees nothing where
/// the value is not smooth, or not precise enough (it may be computed in float32), and so reports no right gradient.
/// What seems wrong is looked at again with smaller steps, and at a point nearby. Costs at most 41 values and one
/// gradient where nothing is wrong; far fewer where values take milliseconds.
std::optional<WrongGradient> wrong_gradient(const Target& target, std::span<const double> z);

/// The same in words, with the names of the coordinates; "" where nothing is wrong.
std::string gradient_complaint(const Target& target, std::span<const double> z, const std::vector<std::string>& names);

}  // namespace hone
