#pragma once

#include "hone/latent/likelihood/facts.hpp"

namespace hone {

// Groups of `categories` neighbours, of which one is 1 and the others 0, with logits a: a softmax in each group.
struct Categorical {
  static constexpr Density density = Density::categorical;
  static constexpr LikelihoodFacts facts = {.name = "categorical",
                                            .needs = "groups of neighbouring values of which one is 1 and the others 0",
                                            .mean = MeanOf::softmax,
                                            .bits = true,
                                            .grouped = true};

  template <class T>
  HONE_INLINE static double log_sum(const LikelihoodShape& shape, const T* a) {
    double top = a[0], sum = 0;
    for (int k = 1; k < shape.categories; ++k) top = a[k] > top ? a[k] : top;
    for (int k = 0; k < shape.categories; ++k) sum += std::exp(a[k] - top);
    return top + std::log(sum);
  }
  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape& shape, int group, const T* a, const T* x) {
    const int first = group * shape.categories;
    double chosen = 0;
    for (int k = 0; k < shape.categories; ++k) chosen += static_cast<double>(x[first + k]) * a[first + k];
    return chosen - log_sum(shape, a + first);
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape& shape, int group, const T* a, const T* x, Put put) {
    const int first = group * shape.categories;
    const double all = log_sum(shape, a + first);
    for (int i = first; i < first + shape.categories; ++i) put(i, x[i] - std::exp(a[i] - all));
  }

  static bool allowed(double x) { return x == 0 || x == 1; }
  static void draw(const LikelihoodShape& shape, int group, const double* a, double noise, double* x) {
    const int first = group * shape.categories;
    const double all = log_sum(shape, a + first);
    int chosen = 0;
    for (double below = std::exp(a[first] - all); below < noise && chosen + 1 < shape.categories;)
      below += std::exp(a[first + ++chosen] - all);
    for (int k = 0; k < shape.categories; ++k) x[first + k] = k == chosen;
  }
};

}  // namespace hone
