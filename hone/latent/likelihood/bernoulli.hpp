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
  static bool allowed(double x) { return x == 0 || x == 1; }
  static void draw(const LikelihoodShape&, int p, const double* a, double noise, double* x) {
    x[p] = noise < sigmoid(a[p]);
  }
};

}  // namespace hone
