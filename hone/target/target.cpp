#include "hone/target/target.hpp"

#include <cmath>

#include "hone/base/scalar.hpp"

namespace hone {

void Target::evaluate(MatrixView<const double> z, Want want, std::span<double> value,
                      MatrixView<double> gradient, std::span<const std::uint32_t> datum) const {
  compute_data(z, want, value, gradient, datum);
  if (!wants_value(want)) return;
  for (int chain = 0; chain < z.cols(); ++chain) {
    double probe = value[chain];
    if (want == Want::both)
      for (const double slope : gradient.column(chain)) probe += slope;
    if (!std::isfinite(probe)) value[chain] = -infinity;
  }
}

void Target::compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                          std::span<const std::uint32_t>) const {
  compute(z, want, value, gradient);
}

}  // namespace hone
