#pragma once

#include "hone/latent/likelihood/facts.hpp"

namespace hone {

// Bits with logits a.
struct Bernoulli {
  static constexpr Density density = Density::bernoulli;
  static constexpr LikelihoodFacts facts = {.name = "bernoulli",
                                            .needs = "binary data; set binarization to threshold or stochastic",
                                            .mean = MeanOf::sigmoid,
                                            .fused = true,
                                            .bits = true};

  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape&, int p, const T* a, const T* x) {
    return static_cast<double>(x[p]) * a[p] - softplus(a[p]);
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape&, int p, const T* a, const T* x, Put put) {
    put(p, x[p] - sigmoid(a[p]));
  }

  static bool allowed(double x) { return x == 0 || x == 1; }
  static void draw(const LikelihoodShape&, int p, const double* a, double noise, double* x) {
    x[p] = noise < sigmoid(a[p]);
  }
};

}  // namespace hone
