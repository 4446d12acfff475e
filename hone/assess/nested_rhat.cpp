#include "hone/assess/nested_rhat.hpp"

#include <cmath>
#include <stdexcept>

#include "hone/base/scalar.hpp"

namespace hone {

double nested_rhat(std::span<const Moments> chain, int per_super) {
  const auto size = static_cast<std::size_t>(per_super);
  if (per_super < 1 || chain.size() % size != 0 || chain.size() < 2 * size)
    throw std::logic_error("nested R-hat needs at least two super-chains of one size");
  Moments between;
  double within = 0;
  for (std::size_t first = 0; first < chain.size(); first += size) {
    Moments means;
    double along = 0;
    for (const Moments& moments : chain.subspan(first, size)) {
      means.add(moments.mean());
      along += moments.variance();
    }
    between.add(means.mean());
    within += means.variance() + along / static_cast<double>(size);
  }
  within /= static_cast<double>(between.count());
  if (between.variance() == 0) return 1;
  return within > 0 ? std::sqrt(1 + between.variance() / within) : infinity;
}

}  // namespace hone
