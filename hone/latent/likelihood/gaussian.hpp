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
  static bool allowed(double x) { return std::isfinite(x); }
  static void draw(const LikelihoodShape&, int p, const double* a, double noise, double* x) {
    x[p] = a[p] + std::sqrt(gaussian_variance) * noise;
  }
};

}  // namespace hone
