#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace hone::test {

// Central differences with one Richardson step: error of order h⁴.
template <class F>
double derivative(F&& f, double h = 1e-3) {
  const auto slope = [&](double step) { return (f(step) - f(-step)) / (2 * step); };
  return (4 * slope(h / 2) - slope(h)) / 3;
}

// The derivative of f() with respect to the number `x` that f reads.
template <class F>
double derivative_in(double& x, F&& f, double h = 1e-3) {
  const double keep = x;
  const double result = derivative(
      [&](double step) {
        x = keep + step;
        return f();
      },
      h * std::max(1e-3, std::min(1.0, std::abs(keep))));
  x = keep;
  return result;
}

}  // namespace hone::test
