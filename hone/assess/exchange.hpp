#pragma once

#include <cstdint>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// A test of q = p. Under it (z0, z_t) is exchangeable, since the frozen kernel is reversible: each difference
// h(z_t) − h(z0) is as likely as its negative. `difference` holds one pair a column and one h a row. The statistic is
// the largest |Σ d| / √(Σ d²) over all h; its law comes from `flips` random assignments of signs to pairs. Returns the
// p-value, in {1, …, flips + 1} / (flips + 1): uniform if q = p, whatever h are.
double exchangeability_p_value(MatrixView<const double> difference, int flips, const RandomSource& random, Team& team);

}  // namespace hone
