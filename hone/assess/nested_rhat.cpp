#include "hone/assess/nested_rhat.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/scalar.hpp"

namespace hone {

namespace {

double share(double between, double within) {
  if (between == 0) return 0;
  return within > 0 ? between / within : between > 0 ? infinity : 0;
}

// The probability that F with n and m degrees of freedom exceeds x ≥ 1: the regularised incomplete beta function of
// y = m / (m + n x), with m/2 and n/2, by its series in y, whose terms are positive.
double f_beyond(double x, double n, double m) {
  const double y = m / (m + n * x), a = 0.5 * m, b = 0.5 * n;
  double sum = 0, term = 1;
  for (int k = 0; term > 1e-16 * sum; ++k) {
    sum += term;
    term *= y * (a + b + k) / (a + 1 + k);
  }
  int sign = 0;  // lgamma would write a global variable
  const double log_beta = ::lgamma_r(a, &sign) + ::lgamma_r(b, &sign) - ::lgamma_r(a + b, &sign);
  return sum / a * std::exp(a * std::log(y) + b * std::log1p(-y) - log_beta);
}

}  // namespace

double NestedVariances::rhat() const { return std::sqrt(1 + share(between, within)); }

double NestedVariances::excess() const { return share(between - chance, within); }

NestedVariances nested_variances(std::span<const Moments> chain, int per_super) {
  const auto size = static_cast<std::size_t>(per_super);
  if (per_super < 1 || chain.size() % size != 0 || chain.size() < 2 * size)
    throw std::logic_error("nested R-hat needs at least two super-chains of one size");
  Moments between;
  NestedVariances result;
  for (std::size_t first = 0; first < chain.size(); first += size) {
    Moments means;
    double along = 0;
    for (const Moments& moments : chain.subspan(first, size)) {
      means.add(moments.mean());
      along += moments.variance();
    }
    between.add(means.mean());
    result.within += means.variance() + along / static_cast<double>(size);
    result.chance += means.variance() / static_cast<double>(size);
  }
  const auto count = static_cast<double>(between.count());
  result.within /= count;
  result.chance /= count;
  result.between = between.variance();
  result.super_chains = static_cast<int>(between.count());
  return result;
}

double most_spread(int super_chains, int per_super, int quantities) {
  constexpr double chance = 0.02;
  const double between = super_chains - 1, within = static_cast<double>(super_chains) * std::max(1, per_super - 1);
  const double beyond = 0.5 * std::erfc(std::sqrt(std::log(quantities / chance)));  // at most chance / quantities
  double low = 0, high = 100;                                                       // of the logarithm
  for (int k = 0; k < 60; ++k) {
    const double middle = 0.5 * (low + high);
    (f_beyond(std::exp(middle), between, within) > beyond ? low : high) = middle;
  }
  return std::exp(high);
}

}  // namespace hone
