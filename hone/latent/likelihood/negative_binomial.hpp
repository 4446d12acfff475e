#pragma once

#include "hone/latent/likelihood/facts.hpp"
#include "hone/latent/likelihood/gamma.hpp"

namespace hone {

// Counts with mean m = positive(a) and variance m + m² / r. The decoder gives the dispersion r = positive(b) too, one
// per value.
struct NegativeBinomial {
  static constexpr Density density = Density::negative_binomial;
  static constexpr LikelihoodFacts facts = {
      .name = "negative-binomial", .needs = "counts", .mean = MeanOf::positive, .outputs = 2, .counts = true};

  template <class T>
  HONE_INLINE static double log_p(const LikelihoodShape& shape, int p, const T* a, const T* x) {
    const double m = modified_softplus(a[p]), r = modified_softplus(a[shape.pixels + p]), n = x[p];
    return log_rising(r, n) - r * std::log1p(m / r) + n * std::log(m / (r + m));
  }
  template <class T, class Put>
  HONE_INLINE static void residual(const LikelihoodShape& shape, int p, const T* a, const T* x, Put put) {
    const double am = a[p], ar = a[shape.pixels + p], n = x[p];
    const double m = modified_softplus(am), r = modified_softplus(ar);
    put(p, (n - m) * r / (m * (r + m)) * sigmoid(am - softplus_shift));
    const double derivative = log_rising_derivative(r, n) - std::log1p(m / r) + (m - n) / (r + m);
    put(shape.pixels + p, derivative * sigmoid(ar - softplus_shift));
  }

  static bool allowed(double x) { return std::isfinite(x) && x >= 0 && x == std::floor(x); }
  static void draw(const LikelihoodShape& shape, int p, const double* a, double noise, double* x) {
    const double m = modified_softplus(a[p]), r = modified_softplus(a[shape.pixels + p]);
    const double most = 10 + m + 100 * std::sqrt(m + m * m / r);
    double n = 0, log_p = -r * std::log1p(m / r), below = std::exp(log_p);  // P(X ≤ n)
    while (below < noise && n < most) {
      log_p += std::log((n + r) / (n + 1) * m / (r + m));
      below += std::exp(log_p);
      ++n;
    }
    x[p] = n;
  }
};

}  // namespace hone
