#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/objective/baseline.hpp"
#include "hone/objective/evidence.hpp"
#include "hone/objective/objective.hpp"

namespace hone {

// The gradient of E_q[f], eq. gradient_term1.
class FirstTermGradient {
 public:
  FirstTermGradient(FirstTerm kind, Entropy entropy) : kind_(kind), entropy_(entropy) {}
  void use(std::unique_ptr<Baseline> baseline) { baseline_ = std::move(baseline); }  // FirstTerm::score needs one
  void add(const Family& family, const Evidence& evidence, std::span<double> gradient);

 private:
  void add_reparameterized(const Family& family, const Evidence& evidence, bool analytic, std::span<double> gradient);
  void add_score(const Family& family, const Evidence& evidence, bool analytic, std::span<double> gradient);

  FirstTerm kind_;
  Entropy entropy_;
  std::unique_ptr<Baseline> baseline_;
  std::vector<double> coefficient_, value_;
  Matrix<double> grad_f_;
};

// The gradient of −E_q(t)[f], eq. gradient_term2 with the control variate.
class SecondTermGradient {
 public:
  SecondTermGradient(Estimator estimator, Entropy entropy, double bound)
      : estimator_(estimator), entropy_(entropy), bound_(bound) {}
  void use(std::unique_ptr<Baseline> baseline) { baseline_ = std::move(baseline); }  // Estimator::full needs one
  void add(const Family& family, const Evidence& evidence, double alpha, std::span<double> gradient);
  double baseline() const { return baseline_ ? baseline_->value() : 0; }

 private:
  Estimator estimator_;
  Entropy entropy_;
  double bound_;  // of |f(z_t) − C|
  std::unique_ptr<Baseline> baseline_;
  std::vector<double> coefficient_, value_;
};

// + Σ weight · scale · ∇_θ log q_θ(z_t): the score at the refined draws, first term of eq. gradient_term2
void add_refined_score(const Family& family, const Evidence& evidence, double scale, std::vector<double>& coefficient,
                       std::span<double> gradient);

}  // namespace hone
