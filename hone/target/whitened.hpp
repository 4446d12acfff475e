#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {

// An affine change of coordinates z = m + L e. In well chosen e a posterior is about standard normal, whatever the
// scales and correlations of z are. L has one of two forms:
//   dense:    lower triangular
//   factored: diag(a) (I + U diag(r − 1) Uᵀ) diag(b), U (D, R) with orthonormal columns; R may be 0, a diagonal L
class Whitening {
 public:
  static Whitening diagonal(std::vector<double> mean, std::vector<double> sd);
  static Whitening dense(std::vector<double> mean, std::span<const double> packed_lower);
  static Whitening low_rank(std::vector<double> mean, std::vector<double> a, Matrix<double> u, std::vector<double> r);

  int dimension() const { return static_cast<int>(mean_.size()); }
  std::span<const double> mean() const { return mean_; }
  bool is_dense() const { return lower_.rows() > 0; }
  bool is_diagonal() const { return !is_dense() && u_.cols() == 0; }

  void to_z(std::span<const double> e, std::span<double> z) const;
  void to_e(std::span<const double> z, std::span<double> e) const;
  void pull_back(std::span<const double> slope_z, std::span<double> slope_e) const;  // Lᵀ slope; spans must differ
  // The same of many points, one a column, faster; the bits are those of the columns one by one.
  void to_z(MatrixView<const double> e, MatrixView<double> z) const;
  void pull_back(MatrixView<const double> slope_z, MatrixView<double> slope_e) const;
  double log_det() const { return log_det_; }  // log |det L|
  double variance(int i) const;                // (L Lᵀ)_ii

  // z = m + L (shift + R e): these coordinates' own coordinates, R diagonal, or packed lower triangular (dense L
  // alone).
  Whitening then_diagonal(std::span<const double> shift, std::span<const double> sd) const;
  Whitening then_lower(std::span<const double> shift, std::span<const double> packed_lower) const;

  std::vector<double> packed_lower() const;  // of a dense L
  Matrix<double> factor() const;             // L itself (D, D)
  // Of a factored L
  std::span<const double> a() const { return a_; }
  std::span<const double> b() const { return b_; }
  std::span<const double> r() const { return r_; }
  MatrixView<const double> u() const { return u_; }

 private:
  void multiply(std::span<const double> e, std::span<double> z) const;  // L e
  void set_dense(std::span<const double> packed_lower);
  void low_rank_product(std::span<double> x, bool inverse) const;  // x ← (I + U diag(r − 1) Uᵀ) x, or its inverse

  std::vector<double> mean_;
  Matrix<double> lower_, upper_;  // L and Lᵀ, whole columns
  TriangularPanels lower_panels_, upper_panels_;
  std::vector<double> a_, b_, r_;
  Matrix<double> u_;
  double log_det_ = 0;
};

// The same posterior over e: its log density at e is that of z = m + L e (the constant log |det L| is left out). HMC
// here with unit masses is HMC over z with the metric (L Lᵀ)⁻¹.
class WhitenedTarget final : public Target {
 public:
  WhitenedTarget(const Target& target, const Whitening& whitening) : target_(target), whitening_(whitening) {}
  int dimension() const override { return target_.dimension(); }

 protected:
  void compute(MatrixView<const double> e, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  const Target& target_;
  const Whitening& whitening_;
};

// Counts the points at which a target was asked.
class CountedTarget final : public Target {
 public:
  explicit CountedTarget(const Target& target) : target_(target) {}
  int dimension() const override { return target_.dimension(); }
  std::int64_t count() const { return count_.load(std::memory_order_relaxed); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    count_.fetch_add(z.cols(), std::memory_order_relaxed);
    target_.evaluate(z, want, value, gradient);
  }

 private:
  const Target& target_;
  mutable std::atomic<std::int64_t> count_ = 0;
};

}  // namespace hone
