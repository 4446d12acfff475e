#include "hone/assess/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hone/base/clones.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// to += Σ sign_k · column k of four neighbours, one after the other
HONE_CLONES void add_signed(const double* sign, const double* from, double* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = to[i] + sign[0] * from[i] + sign[1] * from[count + i] + sign[2] * from[2 * count + i] +
            sign[3] * from[3 * count + i];
}

}  // namespace

double exchangeability_p_value(MatrixView<const double> difference, int flips, const RandomSource& random, Team& team) {
  const auto rows = static_cast<std::size_t>(difference.rows());
  const int pairs = difference.cols();
  // Scale every h to Σ d² = 1, so that statistics are maxima of |Σ d|. Pairs of zeros fill up to a multiple of four.
  Matrix<double> scaled(difference.rows(), (pairs + 3) / 4 * 4);
  std::vector<double> scale(rows);
  for (int i = 0; i < pairs; ++i)
    for (std::size_t h = 0; h < rows; ++h) scale[h] += square(difference.column(i)[h]);
  for (double& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  for (int i = 0; i < pairs; ++i)
    for (std::size_t h = 0; h < rows; ++h) scaled.column(i)[h] = scale[h] * difference.column(i)[h];

  // Sum 0 has the original signs.
  std::vector<double> statistic(static_cast<std::size_t>(flips) + 1);
  team.for_shares(flips + 1, [&](int begin, int end, int) {
    std::vector<double> sum(rows), uniform(pairs), sign(scaled.cols(), 1.0);
    for (int flip = begin; flip < end; ++flip) {
      std::ranges::fill(sum, 0.0);
      if (flip > 0) {
        random.uniforms({Purpose::shuffle, assessment_iteration, static_cast<std::uint32_t>(flip)}, uniform);
        for (int i = 0; i < pairs; ++i) sign[i] = uniform[i] < 0.5 ? -1 : 1;
      }
      for (int i = 0; i < scaled.cols(); i += 4) add_signed(&sign[i], scaled.column(i).data(), sum.data(), rows);
      for (const double s : sum) statistic[flip] = std::max(statistic[flip], std::abs(s));
    }
  });
  // Sums that differ by rounding alone count as equal.
  int as_large = 0;
  for (int flip = 1; flip <= flips; ++flip) as_large += statistic[flip] >= statistic[0] * (1 - 1e-12);
  return (1.0 + as_large) / (1.0 + flips);
}

}  // namespace hone
