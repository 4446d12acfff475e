#pragma once

#include "hone/latent/likelihood/facts.hpp"
#include "hone/tensor/product.hpp"

namespace hone {

// Numbers with mean a and variance 0.01.
struct Gaussian {
  static constexpr Density density = Density::gaussian;
  static constexpr LikelihoodFacts facts = {.name = "gaussian",
                                            .needs = "finite numbers",
                                            .mean = MeanOf::outputs,
                                            .noise = Noise::normal,
                                            .fused = true,
                                            .centred = true};

  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape&, int p, const T* a, const T* x) {
    const double shift = static_cast<double>(x[p]) - a[p];
    return -0.5 * (shift * shift / gaussian_variance + log_two_pi + std::log(gaussian_variance));
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape&, int p, const T* a, const T* x, Put put) {
    put(p, (static_cast<double>(x[p]) - a[p]) / gaussian_variance);
  }

  static bool allowed(double x) { return std::isfinite(x); }
  static void draw(const LikelihoodShape&, int p, const double* a, double noise, double* x) {
    x[p] = a[p] + std::sqrt(gaussian_variance) * noise;
  }
};

}  // namespace hone
