#include "hone/target/whitened.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {

Whitening Whitening::diagonal(std::vector<double> mean, std::vector<double> sd) {
  return low_rank(std::move(mean), std::move(sd), {}, {});
}

Whitening Whitening::dense(std::vector<double> mean, std::span<const double> packed_lower) {
  Whitening result;
  result.mean_ = std::move(mean);
  result.set_dense(packed_lower);
  return result;
}

Whitening Whitening::low_rank(std::vector<double> mean, std::vector<double> a, Matrix<double> u,
                              std::vector<double> r) {
  Whitening result;
  result.mean_ = std::move(mean);
  result.a_ = std::move(a);
  result.b_.assign(result.mean_.size(), 1.0);
  result.u_ = std::move(u);
  result.r_ = std::move(r);
  for (const double x : result.a_) result.log_det_ += std::log(x);
  for (const double x : result.r_) result.log_det_ += std::log(x);
  return result;
}

void Whitening::set_dense(std::span<const double> packed_lower) {
  const int d = dimension();
  lower_ = upper_ = Matrix<double>(d, d);
  log_det_ = 0;
  for (int i = 0; i < d; ++i) {
    for (int j = 0; j <= i; ++j) lower_(i, j) = upper_(j, i) = packed_lower[packed(i, j)];
    log_det_ += std::log(lower_(i, i));
  }
  lower_panels_ = std::make_shared<const TriangularPanels>(Triangle::lower, lower_);
  upper_panels_ = std::make_shared<const TriangularPanels>(Triangle::upper, upper_);
}

void Whitening::low_rank_product(std::span<double> x, bool inverse) const {
  thread_local std::vector<double> part;
  part.resize(r_.size());
  for (int k = 0; k < u_.cols(); ++k) part[k] = ((inverse ? 1 / r_[k] : r_[k]) - 1) * dot(u_.column(k), x);
  for (int k = 0; k < u_.cols(); ++k) add_scaled(part[k], u_.column(k), x);
}

void Whitening::multiply(std::span<const double> e, std::span<double> z) const {
  const std::size_t d = mean_.size();
  if (is_dense()) {
    lower_panels_->multiply({e.data(), dimension(), 1}, {z.data(), dimension(), 1});
    return;
  }
  for (std::size_t i = 0; i < d; ++i) z[i] = b_[i] * e[i];
  low_rank_product(z, false);
  for (std::size_t i = 0; i < d; ++i) z[i] *= a_[i];
}

void Whitening::to_z(std::span<const double> e, std::span<double> z) const {
  multiply(e, z);
  for (std::size_t i = 0; i < mean_.size(); ++i) z[i] += mean_[i];
}

void Whitening::to_e(std::span<const double> z, std::span<double> e) const {
  const std::size_t d = mean_.size();
  for (std::size_t i = 0; i < d; ++i) e[i] = z[i] - mean_[i];
  if (is_dense()) {
    for (std::size_t j = 0; j < d; ++j) {
      const auto column = lower_.column(static_cast<int>(j));
      e[j] /= column[j];
      add_scaled(-e[j], column.subspan(j + 1), e.subspan(j + 1));
    }
    return;
  }
  for (std::size_t i = 0; i < d; ++i) e[i] /= a_[i];
  low_rank_product(e, true);
  for (std::size_t i = 0; i < d; ++i) e[i] /= b_[i];
}

void Whitening::pull_back(std::span<const double> gradient_z, std::span<double> gradient_e) const {
  const std::size_t d = mean_.size();
  if (is_dense()) {
    upper_panels_->multiply({gradient_z.data(), dimension(), 1}, {gradient_e.data(), dimension(), 1});
    return;
  }
  for (std::size_t i = 0; i < d; ++i) gradient_e[i] = a_[i] * gradient_z[i];
  low_rank_product(gradient_e, false);
  for (std::size_t i = 0; i < d; ++i) gradient_e[i] *= b_[i];
}

void Whitening::to_z(MatrixView<const double> e, MatrixView<double> z) const {
  if (!is_dense()) {
    for (int c = 0; c < e.cols(); ++c) to_z(e.column(c), z.column(c));
    return;
  }
  lower_panels_->multiply(e, z);
  for (int c = 0; c < e.cols(); ++c)
    for (std::size_t i = 0; i < mean_.size(); ++i) z.column(c)[i] += mean_[i];
}

void Whitening::pull_back(MatrixView<const double> gradient_z, MatrixView<double> gradient_e) const {
  if (is_dense()) {
    upper_panels_->multiply(gradient_z, gradient_e);
    return;
  }
  for (int c = 0; c < gradient_z.cols(); ++c) pull_back(gradient_z.column(c), gradient_e.column(c));
}

Matrix<double> Whitening::factor() const {
  const int d = dimension();
  Matrix<double> result(d, d);
  std::vector<double> unit(d);
  for (int j = 0; j < d; ++j) {
    unit[j] = 1;
    multiply(unit, result.column(j));
    unit[j] = 0;
  }
  return result;
}

double Whitening::variance(int i) const {
  const int d = dimension();
  double sum = 0;
  if (is_dense()) {
    for (int j = 0; j <= i; ++j) sum += square(upper_(j, i));
    return sum;
  }
  if (is_diagonal()) return square(a_[i] * b_[i]);
  for (int j = 0; j < d; ++j) {
    double element = i == j ? 1 : 0;
    for (int k = 0; k < u_.cols(); ++k) element += u_(i, k) * (r_[k] - 1) * u_(j, k);
    sum += square(a_[i] * element * b_[j]);
  }
  return sum;
}

// Row i of L is a_i (b_i at i, + Σ_k w_k u_jk b_j), w_k = u_ik (r_k − 1), so that with G = Uᵀ diag(b²) U its square is
// a_i² (b_i² (1 + 2 Σ_k w_k u_ik) + wᵀ G w).
std::vector<double> Whitening::variances() const {
  const int d = dimension(), rank = is_dense() ? 0 : u_.cols();
  std::vector<double> result(mean_.size()), scaled(mean_.size()), w(rank);
  if (rank == 0) {
    for (int i = 0; i < d; ++i) result[i] = variance(i);
    return result;
  }
  Matrix<double> gram(rank, rank);
  for (int k = 0; k < rank; ++k) {
    for (int j = 0; j < d; ++j) scaled[j] = square(b_[j]) * u_(j, k);
    for (int l = 0; l < rank; ++l) gram(l, k) = dot(u_.column(l), scaled);
  }
  for (int i = 0; i < d; ++i) {
    double own = 1, others = 0;
    for (int k = 0; k < rank; ++k) {
      w[k] = u_(i, k) * (r_[k] - 1);
      own += 2 * w[k] * u_(i, k);
    }
    for (int k = 0; k < rank; ++k) others += w[k] * dot(gram.column(k), w);
    result[i] = square(a_[i]) * (square(b_[i]) * own + others);
  }
  return result;
}

Whitening Whitening::then_diagonal(std::span<const double> shift, std::span<const double> sd) const {
  if (is_dense()) {
    std::vector<double> lower(packed_size(sd.size()));
    for (std::size_t i = 0; i < sd.size(); ++i) lower[packed(i, i)] = sd[i];
    return then_lower(shift, lower);
  }
  Whitening result = *this;
  to_z(shift, result.mean_);
  for (std::size_t i = 0; i < sd.size(); ++i) {
    result.b_[i] *= sd[i];
    result.log_det_ += std::log(sd[i]);
  }
  return result;
}

Whitening Whitening::then_lower(std::span<const double> shift, std::span<const double> packed_right) const {
  const int d = dimension();
  Whitening result = *this;
  to_z(shift, result.mean_);
  std::vector<double> product(packed_size(static_cast<std::size_t>(d)));
  for (int i = 0; i < d; ++i)
    for (int k = 0; k <= i; ++k) {
      const double left = upper_(k, i);  // L_ik
      for (int j = 0; j <= k; ++j) product[packed(i, j)] += left * packed_right[packed(k, j)];
    }
  result.set_dense(product);
  return result;
}

std::vector<double> Whitening::packed_lower() const {
  std::vector<double> result(packed_size(mean_.size()));
  for (int i = 0; i < dimension(); ++i)
    for (int j = 0; j <= i; ++j) result[packed(i, j)] = upper_(j, i);
  return result;
}

void WhitenedTarget::compute(MatrixView<const double> e, Want want, std::span<double> value,
                             MatrixView<double> gradient) const {
  // The memory is moved out while in use: the target may itself be a whitened one.
  thread_local std::vector<double> spare;
  std::vector<double> storage = std::exchange(spare, {});
  const auto size = static_cast<std::size_t>(e.rows()) * static_cast<std::size_t>(e.cols());
  storage.resize(2 * size);
  const MatrixView<double> z(storage.data(), e.rows(), e.cols()), gradient_z(storage.data() + size, e.rows(), e.cols());
  whitening_.to_z(e, z);
  target_.evaluate(z, want, value, wants_gradient(want) ? gradient_z : MatrixView<double>{});
  if (wants_gradient(want)) whitening_.pull_back(gradient_z, gradient);
  spare = std::move(storage);
}

}  // namespace hone
