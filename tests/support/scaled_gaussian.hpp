#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace hone::test {

// A Gaussian whose coordinates have scales from 10⁻³ to 10³, means three sds from zero, and neighbours correlated by ρ.
inline auto scaled_gaussian(int d, double rho) {
  return [d, rho](std::span<const double> z, std::span<double> g) {
    std::ranges::fill(g, 0.0);
    double sum = 0, before = 0, scale_before = 1;
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1)), x = z[i] / scale - 3;
      const double variance = i > 0 ? 1 - rho * rho : 1, rest = x - (i > 0 ? rho * before : 0);
      sum -= 0.5 * rest * rest / variance;
      g[i] -= rest / variance / scale;
      if (i > 0) g[i - 1] += rho * rest / variance / scale_before;
      before = x;
      scale_before = scale;
    }
    return sum;
  };
}

}  // namespace hone::test
