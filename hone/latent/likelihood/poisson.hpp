#pragma once

#include "hone/latent/likelihood/facts.hpp"

namespace hone {

// Counts with rate positive(a).
struct Poisson {
  static constexpr Density density = Density::poisson;
  static constexpr LikelihoodFacts facts = {
      .name = "poisson", .needs = "counts", .mean = MeanOf::positive, .fused = true, .counts = true};
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
