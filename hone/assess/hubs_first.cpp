#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/assess/map_fit.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// After the leading ones, next comes the coordinate that explains most of the variance that those before it leave to
// others. Once none explains much, the rest stays in the given order. `covariance` is used up.
std::vector<int> hub_order(Matrix<double> covariance, std::span<const int> leading) {
  constexpr double much = 0.5;  // the sum of squared correlations with the others
  const int d = covariance.rows();
  std::vector<int> order, left(static_cast<std::size_t>(d));
  std::iota(left.begin(), left.end(), 0);
  while (left.size() > 1) {
    double most = much;
    std::size_t best = left.size();
    if (order.size() < leading.size())
      best = static_cast<std::size_t>(std::ranges::find(left, leading[order.size()]) - left.begin());
    for (std::size_t a = 0; order.size() >= leading.size() && a < left.size(); ++a) {
      double explained = 0;
      for (const int j : left)
        if (j != left[a])
          explained += square(covariance(j, left[a])) / (covariance(j, j) * covariance(left[a], left[a]));
      if (!(explained > most)) continue;
      most = explained;
      best = a;
    }
    if (best == left.size()) break;
    const int hub = left[best];
    order.push_back(hub);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
    const std::vector<double> column(covariance.column(hub).begin(), covariance.column(hub).end());
    for (const int j : left)
      for (const int k : left) covariance(j, k) -= column[j] * column[k] / column[hub];
  }
  order.insert(order.end(), left.begin(), left.end());
  return order;
}

}  // namespace

Rotation hubs_first(const Whitening& whitening, std::span<const int> leading) {
  if (!whitening.is_dense()) return nullptr;
  const int d = whitening.dimension();
  const std::vector<double> lower = whitening.packed_lower();
  Matrix<double> rows(d, d), covariance(d, d);  // column i of `rows` is row i of L
  for (int i = 0; i < d; ++i)
    for (int j = 0; j <= i; ++j) rows(j, i) = lower[packed(i, j)];
  const auto fill = [&](const std::vector<int>& order) {
    for (int i = 0; i < d; ++i)
      for (int j = 0; j < d; ++j) covariance(i, j) = dot(rows.column(order[i]), rows.column(order[j]));
  };
  std::vector<int> as_given(static_cast<std::size_t>(d));
  std::iota(as_given.begin(), as_given.end(), 0);
  fill(as_given);
  const std::vector<int> order = hub_order(covariance, leading);
  if (order == as_given) return nullptr;
  fill(order);
  std::vector<double> factor;
  try {
    factor = cholesky(covariance);
  } catch (const InputError&) {  // so ill-conditioned that rounding decides
    return nullptr;
  }
  auto rotation = std::make_shared<Matrix<double>>(d, d);  // R = Λ⁻¹ (rows of L in the new order)
  std::vector<double> column(static_cast<std::size_t>(d));
  for (int j = 0; j < d; ++j) {
    for (int i = 0; i < d; ++i) column[i] = rows(j, order[i]);
    solve_lower(factor, column, rotation->column(j));
  }
  constexpr double rounding = 1e-8;
  for (int i = 0; i < d; ++i)
    for (int j = 0; j <= i; ++j)
      if (!(std::abs(dot(rotation->column(i), rotation->column(j)) - (i == j ? 1 : 0)) < rounding)) return nullptr;
  return rotation;
}

}  // namespace hone
