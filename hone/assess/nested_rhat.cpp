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

// The F distribution's quantile by Paulson, from Wilson's and Hilferty's approximation of both χ²: with x the cube root
// of F, ((1 − b) x − (1 − a))² = z² (b x² + a).
double most_spread(int super_chains, int per_super, int quantities) {
  constexpr double chance = 0.02;
  const double a = 2 / (9.0 * (super_chains - 1)), b = 2 / (9.0 * super_chains * std::max(1, per_super - 1));
  const double z2 = 2 * std::log(quantities / chance);
  const double square_term = square(1 - b) - z2 * b, linear = (1 - a) * (1 - b), constant = square(1 - a) - z2 * a;
  if (!(square_term > 0)) return infinity;
  const double root = (linear + std::sqrt(linear * linear - square_term * constant)) / square_term;
  return root * root * root;
}

}  // namespace hone
