#pragma once

#include <bit>
#include <cstdint>

#include "hone/base/clones.hpp"

namespace hone {

// Elementary functions without branches and tables, so that loops over them vectorize. Correct to about 1 ulp. The
// polynomials and their intervals are those of FreeBSD's msun (fdlibm).

// log u for u in [2⁻⁶⁰, 1]: u = 2^−k m with m in [√½, √2), log m by s = (m − 1) / (m + 1)
HONE_INLINE double log_unit(double u) {
  constexpr std::uint64_t root_half = 0x3FE6'A09E'667F'3BCDu;
  const auto bits = std::bit_cast<std::uint64_t>(u);
  const std::uint64_t k = (root_half + ((std::uint64_t{1} << 52) - 1) - bits) >> 52;
  const double scale = std::bit_cast<double>(k | 0x4330'0000'0000'0000u) - 0x1p52;  // k as a double
  const double f = std::bit_cast<double>(bits + (k << 52)) - 1;
  const double s = f / (2 + f), z = s * s, w = z * z, half = 0.5 * f * f;
  const double even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332));
  const double odd = z * (0.6666666666666735130 +
                          w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591)));
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  return -(scale * ln2_high) - ((half - (s * (half + (even + odd)) - scale * ln2_low)) - f);
}

struct CosSin {
  double cos, sin;
};

// cos and sin of 2π v for v in [0, 1]: v = n/4 + r with |r| ≤ 1/8, exactly
HONE_INLINE CosSin cos_sin_turn(double v) {
  constexpr double round = 0x1.8p52;  // adding this to x rounds x to an integer
  const double shifted = 4 * v + round;
  const auto quarter = std::bit_cast<std::uint64_t>(shifted);
  const double x = 6.283185307179586477 * (v - 0.25 * (shifted - round));
  const double z = x * x, w = z * z;
  const double sine_tail = 8.33333333332248946124e-03 +
                           z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
                           z * w * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
  const double sine = x + z * x * (-1.66666666666666324348e-01 + z * sine_tail);
  const double cosine_tail =
      z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)) +
      w * w * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
  const double half = 0.5 * z, one_less = 1 - half;
  const double cosine = one_less + (((1 - one_less) - half) + z * cosine_tail);
  // for each quarter turn: (cos, sin) ← (−sin, cos)
  const auto c = std::bit_cast<std::uint64_t>(cosine), s = std::bit_cast<std::uint64_t>(sine);
  const std::uint64_t swap = (c ^ s) & (0 - (quarter & 1));
  return {std::bit_cast<double>(c ^ swap ^ (((quarter + 1) & 2) << 62)),
          std::bit_cast<double>(s ^ swap ^ ((quarter & 2) << 62))};
}

}  // namespace hone
