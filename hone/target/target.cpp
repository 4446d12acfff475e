#include "hone/target/target.hpp"

#include <bit>
#include <cmath>

#include "hone/base/clones.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// By the exponents, as integers, whose sums may be reordered into vectors.
HONE_CLONES bool all_finite(const double* x, std::size_t count) {
  constexpr std::uint64_t exponent = 0x7FF0'0000'0000'0000u;
  std::uint64_t bad = 0;
  for (std::size_t i = 0; i < count; ++i) bad |= (std::bit_cast<std::uint64_t>(x[i]) & exponent) == exponent;
  return bad == 0;
}

}  // namespace

void Target::evaluate(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                      std::span<const std::uint32_t> datum) const {
  compute_data(z, want, value, gradient, datum);
  if (!wants_value(want)) return;
  const auto count = static_cast<std::size_t>(z.cols());
  if (all_finite(value.data(), count) &&  // usually all are: one look at everything
      (want != Want::both || all_finite(gradient.data(), count * static_cast<std::size_t>(z.rows()))))
    return;
  for (int chain = 0; chain < z.cols(); ++chain) {
    bool finite = std::isfinite(value[chain]);
    if (want == Want::both) finite = finite && all_finite(gradient.column(chain).data(), gradient.column(chain).size());
    if (!finite) value[chain] = -infinity;
  }
}

void Target::compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                          std::span<const std::uint32_t>) const {
  compute(z, want, value, gradient);
}

}  // namespace hone
