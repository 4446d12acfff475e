#pragma once

#include "hone/latent/likelihood/facts.hpp"

namespace hone {

// Numbers with mean a and a standard deviation that the decoder gives too, one per value. It stays above 0.01:
// likelihoods of values that never change would grow without bound, and posteriors become too steep for any chain.
struct GaussianLearned {
  static constexpr Density density = Density::gaussian_learned;
  static constexpr LikelihoodFacts facts = {.name = "gaussian-learned",
                                            .needs = "finite numbers",
                                            .mean = MeanOf::outputs,
                                            .noise = Noise::normal,
                                            .outputs = 2,
                                            .centred = true};
  static constexpr double smallest_sd = 0.01;
  HONE_INLINE static double sd(double b) { return smallest_sd + softplus(b); }

  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape& shape, int p, const T* a, const T* x) {
    const double s = sd(a[shape.pixels + p]);
    return log_standard_normal((x[p] - a[p]) / s) - std::log(s);
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape& shape, int p, const T* a, const T* x, Put put) {
    const double b = a[shape.pixels + p], s = sd(b), u = (x[p] - a[p]) / s;
    put(p, u / s);
    put(shape.pixels + p, (u * u - 1) / s * sigmoid(b));
  }

  static bool allowed(double x) { return std::isfinite(x); }
  static void draw(const LikelihoodShape& shape, int p, const double* a, double noise, double* x) {
    x[p] = a[p] + sd(a[shape.pixels + p]) * noise;
  }
};

}  // namespace hone
