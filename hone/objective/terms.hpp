#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/objective/baseline.hpp"
#include "hone/objective/evidence.hpp"

namespace hone {

// The terms of −∇VCD = ∇E_q[f] − ∇E_q(t)[f].
enum class Term { first, second };

// How ∇_θ E_q[f] is estimated.
enum class FirstTerm { reparameterized, score };

// Whether the score at z0 of eq. gradient_term2 is kept, or dropped as the paper allows for large t.
enum class Estimator { full, large_t };

// Whether E_q[−log q] and its gradient are exact (a Gaussian; appendix 3, the authors' choice) or sampled at z0.
enum class Entropy { automatic, analytic, sampled };

// Whether `entropy` means the analytic form for this family; an InputError where it asks for one that there is not.
bool analytic_entropy(Entropy entropy, const Family& family);

// The gradient of E_q[f], eq. gradient_term1.
class FirstTermGradient {
 public:
  // The baseline serves FirstTerm::score alone and may else be none.
  FirstTermGradient(FirstTerm kind, bool analytic, std::unique_ptr<Baseline> baseline);
  void add(const Family& family, const Evidence& evidence, std::span<double> gradient);

 private:
  void add_reparameterized(const Family& family, const Evidence& evidence, std::span<double> gradient);
  void add_score(const Family& family, const Evidence& evidence, std::span<double> gradient);

  FirstTerm kind_;
  bool analytic_;
  std::unique_ptr<Baseline> baseline_;
  std::vector<double> coefficient_, value_;
  Matrix<double> slope_;
};

// The gradient of −E_q(t)[f], eq. gradient_term2 with the control variate.
class SecondTermGradient {
 public:
  // The baseline serves Estimator::full alone and may else be none.
  SecondTermGradient(Estimator estimator, bool analytic, std::unique_ptr<Baseline> baseline);
  void add(const Family& family, const Evidence& evidence, double alpha, std::span<double> gradient);
  double baseline() const { return baseline_ ? baseline_->value() : 0; }

 private:
  Estimator estimator_;
  bool analytic_;
  std::unique_ptr<Baseline> baseline_;
  std::vector<double> coefficient_, value_;
};

// + Σ weight · scale · ∇_θ log q_θ(z_t): the score at the refined draws, first term of eq. gradient_term2
void add_refined_score(const Family& family, const Evidence& evidence, double scale, std::vector<double>& coefficient,
                       std::span<double> gradient);

}  // namespace hone
