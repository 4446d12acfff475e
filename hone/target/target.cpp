#include "hone/target/target.hpp"

#include <cmath>

#include "hone/base/scalar.hpp"

namespace hone {

void Target::evaluate(MatrixView<const double> z, Want want, std::span<double> value,
                      MatrixView<double> gradient) const {
  compute(z, want, value, gradient);
  if (!wants_value(want)) return;
  for (int chain = 0; chain < z.cols(); ++chain) {
    double probe = value[chain];
    if (want == Want::both)
      for (const double slope : gradient.column(chain)) probe += slope;
    if (!std::isfinite(probe)) value[chain] = -infinity;
  }
}

}  // namespace hone
