#include "hone/objective/terms.hpp"

#include <algorithm>

#include "hone/base/error.hpp"
#include "hone/base/planted.hpp"

namespace hone {

bool analytic_entropy(Entropy entropy, const Family& family) {
  if (entropy == Entropy::analytic && !family.has_analytic_entropy())
    throw InputError("the entropy of this family has no analytic form; use sampled");
  return entropy != Entropy::sampled && family.has_analytic_entropy();
}

void FirstTermGradient::add(const Family& family, const Evidence& evidence, std::span<double> gradient) {
  coefficient_.resize(evidence.draws.count());
  value_.resize(evidence.draws.count());
  const bool analytic = analytic_entropy(entropy_, family);
  if (kind_ == FirstTerm::score)
    add_score(family, evidence, analytic, gradient);
  else
    add_reparameterized(family, evidence, analytic, gradient);
}

void FirstTermGradient::add_reparameterized(const Family& family, const Evidence& evidence, bool analytic,
                                            std::span<double> gradient) {
  const Draws& draws = evidence.draws;
  const std::span<const double> weight(draws.weight);
  if (analytic) {  // E_q[log p] by its path, the entropy exactly: eq2:objective_simplified
    family.add_pathwise(draws, evidence.grad_p0, weight, gradient);
    family.add_entropy_gradient(weight, gradient);
    return;
  }
  if (grad_f_.cols() != draws.count()) grad_f_ = Matrix<double>(family.dimension(), draws.count());
  for (int i = 0; i < draws.count(); ++i) {
    for (int d = 0; d < family.dimension(); ++d)
      grad_f_(d, i) = evidence.grad_p0(d, i) - evidence.grad_q0(d, i);  // ∇_z f
    coefficient_[i] = weight[i] * evidence.f0(i);
  }
  family.add_pathwise(draws, grad_f_, weight, gradient);      // eq. gradient_term1
  family.add_component_score(draws, coefficient_, gradient);  // eq2:mixture_grad_elbo_wk
}

void FirstTermGradient::add_score(const Family& family, const Evidence& evidence, bool analytic,
                                  std::span<double> gradient) {
  const Draws& draws = evidence.draws;
  // E_q[(f − C) ∇ log q]; the analytic form samples log p alone and adds the entropy's gradient
  for (int i = 0; i < draws.count(); ++i) value_[i] = analytic ? evidence.log_p0[i] : evidence.f0(i);
  baseline_->centre(draws, value_, coefficient_);
  for (int i = 0; i < draws.count(); ++i) coefficient_[i] *= draws.weight[i];
  family.add_draw_score(draws, coefficient_, gradient);
  if (analytic) family.add_entropy_gradient(draws.weight, gradient);
}

void SecondTermGradient::add(const Family& family, const Evidence& evidence, double alpha, std::span<double> gradient) {
  const Draws& draws = evidence.draws;
  coefficient_.resize(draws.count());
  value_.resize(draws.count());
  if (estimator_ == Estimator::full && !planted(Fault::score_term_dropped)) {
    const bool analytic = analytic_entropy(entropy_, family);
    for (int i = 0; i < draws.count(); ++i)  // f without its constant is appendix 3's g
      value_[i] = analytic ? evidence.ft(i) - family.log_normalizer(i) : evidence.ft(i);
    baseline_->centre(draws, value_, coefficient_);
    const double sign = planted(Fault::score_term_sign) ? 1 : -1;
    for (int i = 0; i < draws.count(); ++i)
      coefficient_[i] = sign * alpha * draws.weight[i] * std::clamp(coefficient_[i], -bound_, bound_);
    family.add_draw_score(draws, coefficient_, gradient);  // eq. gradient_term2, second term
  }
  add_refined_score(family, evidence, planted(Fault::refined_score_sign) ? -alpha : alpha, coefficient_, gradient);
}

void add_refined_score(const Family& family, const Evidence& evidence, double scale, std::vector<double>& coefficient,
                       std::span<double> gradient) {
  const Draws& draws = evidence.draws;
  coefficient.resize(draws.count());
  for (int i = 0; i < draws.count(); ++i) coefficient[i] = scale * draws.weight[i];
  family.add_score(evidence.refined.z, coefficient, gradient);  // eq. gradient_term2, first term
}

}  // namespace hone
