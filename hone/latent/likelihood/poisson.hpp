#pragma once

#include "hone/latent/likelihood/facts.hpp"

namespace hone {

// Counts with rate positive(a).
struct Poisson {
  static constexpr Density density = Density::poisson;
  static constexpr LikelihoodFacts facts = {
      .name = "poisson", .needs = "counts", .mean = MeanOf::positive, .fused = true, .counts = true};

  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape&, int p, const T* a, const T* x) {
    const double rate = modified_softplus(a[p]);
    return x[p] * std::log(rate) - rate;
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape&, int p, const T* a, const T* x, Put put) {
    put(p, (x[p] / modified_softplus(a[p]) - 1) * sigmoid(a[p] - softplus_shift));
  }

  static bool allowed(double x) { return std::isfinite(x) && x >= 0 && x == std::floor(x); }
  static void draw(const LikelihoodShape&, int p, const double* a, double noise, double* x) {
    const double rate = modified_softplus(a[p]);
    double n = 0, log_p = -rate, below = std::exp(log_p);  // P(X ≤ n)
    while (below < noise && n < 10 * (rate + 10)) {
      log_p += std::log(rate / ++n);
      below += std::exp(log_p);
    }
    x[p] = n;
  }
};

}  // namespace hone
