#pragma once

#include <cstdint>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Tests q = p. If q = p, then (z0, z_t) is exchangeable, since the frozen kernel is reversible: each difference
// d = h(z_t) − h(z0) is as likely as its negative. `difference` has one pair per column and one h per row. The
// statistic is the largest |Σ d| / √(Σ d²) over all h; `flips` random assignments of signs to pairs give its
// distribution. Returns the p-value, one of {1, …, flips + 1} / (flips + 1). It is uniform if q = p, whatever the h
// are.
double exchangeability_p_value(MatrixView<const double> difference, int flips, const RandomSource& random, Team& team);

}  // namespace hone
