#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

class TriangularPanels;  // tensor/triangular.hpp

/// An affine change of coordinates z = m + L e. In well-chosen e a posterior is about standard normal, whatever the
/// scales and correlations of z are. L has one of two forms:
///
/// - dense: lower triangular
/// - factored: diag(a) (I + U diag(r − 1) Uᵀ) diag(b), where U (D, R) has orthonormal columns. With R = 0, L is
/// diagonal.
class Whitening {
 public:
  /// L = diag(sd)
  static Whitening diagonal(std::vector<double> mean, std::vector<double> sd);
  /// L lower triangular, packed row after row: element (i, j) stands at i (i + 1) / 2 + j.
  static Whitening dense(std::vector<double> mean, std::span<const double> packed_lower);
  /// L = diag(a) (I + U diag(r − 1) Uᵀ)
  static Whitening low_rank(std::vector<double> mean, std::vector<double> a, Matrix<double> u, std::vector<double> r);

  /// D
  int dimension() const { return static_cast<int>(mean_.size()); }
  /// m
  std::span<const double> mean() const { return mean_; }
  /// Whether L is dense, not factored.
  bool is_dense() const { return lower_.rows() > 0; }
  /// Whether L is diagonal.
  bool is_diagonal() const { return !is_dense() && u_.cols() == 0; }

  /// z = m + L e
  void to_z(std::span<const double> e, std::span<double> z) const;
  /// e = L⁻¹ (z − m)
  void to_e(std::span<const double> z, std::span<double> e) const;
  /// A gradient with respect to z → the gradient with respect to e, Lᵀ gradient_z. The spans must differ.
  void pull_back(std::span<const double> gradient_z, std::span<double> gradient_e) const;
  /// to_z of many points, one per column. Faster, and bit for bit the same as one column after the other.
  void to_z(MatrixView<const double> e, MatrixView<double> z) const;
  /// pull_back of many gradients, one per column: faster, with the same bits.
  void pull_back(MatrixView<const double> gradient_z, MatrixView<double> gradient_e) const;
  /// log |det L|
  double log_det() const { return log_det_; }
  /// (L Lᵀ)_ii
  double variance(int i) const;
  /// All of them: of a factored L in O(D R²).
  std::vector<double> variances() const;

  /// z = m + L (shift + diag(sd) e): coordinates within these coordinates.
  Whitening then_diagonal(std::span<const double> shift, std::span<const double> sd) const;
  /// z = m + L (shift + R e), R packed lower triangular; only for a dense L.
  Whitening then_lower(std::span<const double> shift, std::span<const double> packed_lower) const;

  /// A dense L, packed.
  std::vector<double> packed_lower() const;
  /// L itself (D, D).
  Matrix<double> factor() const;
  /// a of a factored L.
  std::span<const double> a() const { return a_; }
  /// b of a factored L.
  std::span<const double> b() const { return b_; }
  /// r of a factored L.
  std::span<const double> r() const { return r_; }
  /// U of a factored L.
  MatrixView<const double> u() const { return u_; }

 private:
  void multiply(std::span<const double> e, std::span<double> z) const;  // L e
  void set_dense(std::span<const double> packed_lower);
  void low_rank_product(std::span<double> x, bool inverse) const;  // x ← (I + U diag(r − 1) Uᵀ) x, or its inverse

  std::vector<double> mean_;
  Matrix<double> lower_, upper_;                                         // L and Lᵀ, whole columns
  std::shared_ptr<const TriangularPanels> lower_panels_, upper_panels_;  // the same, for products with many points
  std::vector<double> a_, b_, r_;
  Matrix<double> u_;
  double log_det_ = 0;
};

}  // namespace hone
