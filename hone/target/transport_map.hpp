#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// A nonlinear change of coordinates e = T(u), in which a posterior is closer to standard normal than over e: location
// and log scale of some coordinates depend on others. It is triangular in an order of its own (the coordinates that
// others depend on come first), so its inverse and its Jacobian are sums:
//
//   e_j = shift + Σ_k a_k f_k(e) + exp(log_scale + Σ_k b_k g_k(e)) u_j
//
// The features f and g of one coordinate each are those of Shape. All but the linear one level off where no states were
// seen, so T is about affine far out: tails stay as they are. With a rotation R the coordinates of these formulas are R
// e instead of e.
class TransportMap {
 public:
  enum class Shape {
    linear,  // x itself
    level,   // φ(x): x where states were seen; beyond, it levels off
    square,  // φ(x)²
    hinge,   // min(0, φ(x) − knot), rounded
  };
  // A feature of one coordinate x, and its factor. φ(x) is x on [low, high], and levels off at a distance of `width`.
  struct Term {
    int from;  // the coordinate
    Shape shape;
    double low = 0, high = 0, width = 1;
    double knot = 0, bend = 1;  // a hinge turns at the knot, within `bend`
    double factor = 0;
    double feature(double x) const;
    double slope(double x) const;  // of the feature
    double level(double x) const;  // φ
  };
  struct Row {
    int coordinate;  // j
    double shift = 0, log_scale = 0;
    std::vector<Term> location, scale;
  };

  // Rows in the order of T: a row's terms come from coordinates whose rows precede it, or that have none. Coordinates
  // without a row stay as they are. The rotation is orthogonal; none: the identity.
  TransportMap(int dimension, std::vector<Row> rows, std::shared_ptr<const Matrix<double>> rotation = nullptr)
      : dimension_(dimension), rows_(std::move(rows)), rotation_(std::move(rotation)) {}

  std::span<const Row> rows() const { return rows_; }
  // Numbers in what to_e and to_u leave for pull_back and push_forward: R e, and every row's exp(log_scale + …).
  int trace_size() const { return dimension_ + static_cast<int>(rows_.size()); }

  // e = T(u); returns log |det ∂e/∂u|
  double to_e(std::span<const double> u, std::span<double> e, std::span<double> trace) const;
  // u = T⁻¹(e); returns log |det ∂e/∂u|
  double to_u(std::span<const double> e, std::span<double> u, std::span<double> trace) const;
  // ∇_e log p(e) → ∇_u [log p(T(u)) + log |det ∂e/∂u|], in place
  void pull_back(std::span<const double> u, std::span<const double> trace, std::span<double> gradient) const;
  // The inverse of pull_back, in place.
  void push_forward(std::span<const double> u, std::span<const double> trace, std::span<double> gradient) const;

 private:
  enum class Way { there, back };                   // R x, Rᵀ x
  void rotate(Way way, std::span<double> x) const;  // in place

  int dimension_;
  std::vector<Row> rows_;
  std::shared_ptr<const Matrix<double>> rotation_;
};

// The density of u = T⁻¹(e), where the target is one of e.
class TransportedTarget final : public Target {
 public:
  TransportedTarget(const Target& target, const TransportMap& map) : target_(target), map_(map) {}
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }
  void evaluated_elsewhere(std::int64_t points) const override { target_.evaluated_elsewhere(points); }

 protected:
  void compute(MatrixView<const double> u, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  const Target& target_;
  const TransportMap& map_;
};

}  // namespace hone
