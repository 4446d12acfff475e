#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Limits of a search.
struct LbfgsConfig {
  int history = 10;         // pairs (s, y) that are kept
  int iterations = 500;     // at most
  double tolerance = 1e-9;  // stops if an iteration gains less than this times (1 + |log p|)
};

// The limited-memory estimate of −(∇² log p)⁻¹: H0 = diag(α), corrected by the pairs s = Δz, y = −Δ∇log p.
class InverseHessian {
 public:
  InverseHessian(int dimension, int history);

  // Adds a pair if the curvature sᵀy is safely positive; returns whether it did.
  bool add(std::span<const double> s, std::span<const double> y);
  void multiply(std::span<const double> x, std::span<double> hx) const;  // spans must differ
  std::span<const double> diagonal() const { return alpha_; }

  // H = A (I + U diag(r² − 1) Uᵀ) A with A = diag(√α) and orthonormal U: the form of a low-rank whitening.
  struct Factors {
    std::vector<double> a;
    Matrix<double> u;       // (D, R)
    std::vector<double> r;  // (R)
  };
  Factors factors() const;

  // H = L Lᵀ with L = (I + s_m v_mᵀ) … (I + s_1 v_1ᵀ) A: another root of H, without orthonormal vectors. To make it
  // costs O(D m²), to multiply with it O(D m).
  class Root {
   public:
    explicit Root(const InverseHessian& h);
    void multiply(std::span<double> e) const;  // e ← L e
    double log_det() const { return log_det_; }

   private:
    std::vector<double> a_;
    Matrix<double> s_, v_;  // (D, m)
    double log_det_ = 0;
  };

 private:
  void update_diagonal(std::span<const double> s, std::span<const double> y);

  int history_;
  std::vector<double> alpha_;
  std::vector<std::vector<double>> s_, y_;  // oldest first
  std::vector<double> curvature_;           // sᵀ y of each pair
};

// The state of a search after an iteration: everything that a local approximation of log p needs.
struct SearchPoint {
  std::span<const double> z;
  double value;
  std::span<const double> gradient;
  const InverseHessian& inverse_hessian;
};

struct SearchResult {
  std::vector<double> z, gradient;
  double value = 0;
  int iterations = 0;
  bool converged = false;  // gains became small; false if the iterations ran out or log p grows without bound
};

// Maximises log p from z, where it must be finite. Steps into regions of −∞ are shortened. `visit` is called at every
// point reached and may end the search by returning false.
SearchResult maximize(const Target& target, std::span<const double> z, const LbfgsConfig& config,
                      const std::function<bool(const SearchPoint&)>& visit = {});

}  // namespace hone
