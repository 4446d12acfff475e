// An objective of your own: the importance-weighted ELBO, log of the mean of p(x, z_i) / q(z_i) over the draws of an
// iteration (Burda et al. 2016), by the doubly reparameterized gradient (Tucker et al. 2019): Σ w_i² ∇_z f · ∇_θ z_i
// with normalised weights w_i. The q is wider than one fitted by KL.
#include <cmath>
#include <cstdio>

#include "hone/hone.hpp"

class ImportanceWeighted final : public hone::Objective {
 public:
  std::unique_ptr<Objective> clone() const override { return std::make_unique<ImportanceWeighted>(); }
  std::string name() const override { return "importance-weighted"; }
  bool refines() const override { return false; }  // it reads z0 only
  int least_draws() const override { return 2; }   // with one it is the KL

  void add_ascent(const hone::Family& q, const hone::Evidence& e, std::span<double> gradient) override {
    const int n = e.draws.count();
    double top = e.f0(0), sum = 0;
    for (int i = 1; i < n; ++i) top = std::max(top, e.f0(i));
    weight_.resize(n);
    for (int i = 0; i < n; ++i) sum += weight_[i] = e.draws.weight[i] * std::exp(e.f0(i) - top);
    for (double& w : weight_) w = (w / sum) * (w / sum);
    grad_f_ = e.grad_p0;  // ∇_z f
    for (int i = 0; i < n; ++i)
      for (int d = 0; d < q.dimension(); ++d) grad_f_(d, i) -= e.grad_q0(d, i);
    q.add_pathwise(e.draws, grad_f_, weight_, gradient);
  }

 private:
  std::vector<double> weight_;
  hone::Matrix<double> grad_f_{1, 1};
};

// sd of the first coordinate, averaged over the second half of the iterations
double fitted_sd(std::shared_ptr<const hone::Objective> objective, hone::Covariance covariance) {
  // A Gaussian with mean (1, 1), sds 1 and correlation 0.9
  const hone::DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) {
    const double x = z[0] - 1, y = z[1] - 1, precision = 1 / (1 - 0.81);
    gradient[0] = -precision * (x - 0.9 * y);
    gradient[1] = -precision * (y - 0.9 * x);
    return 0.5 * (x * gradient[0] + y * gradient[1]);
  });
  hone::GaussianFamily q(2, covariance);
  hone::FitConfig config;
  config.objective = std::move(objective);
  config.draws_per_iteration = 32;
  const hone::PhiloxSource random(1);
  hone::Fit fit(target, q, config, random);
  constexpr int iterations = 8000;
  double mean[2], sd[2], average = 0;
  for (int i = 0; i < iterations; ++i) {
    fit.step();
    q.moments(mean, sd);
    if (2 * i >= iterations) average += 2 * sd[0] / iterations;
  }
  return average;
}

int main() {
  const auto own = std::make_shared<ImportanceWeighted>();
  const double exact = fitted_sd(own, hone::Covariance::full);
  const double weighted = fitted_sd(own, hone::Covariance::diagonal);
  const double kl = fitted_sd(std::make_shared<hone::Kl>(), hone::Covariance::diagonal);
  std::printf("sd of q (the target's is 1): full covariance %.3f, independent coordinates %.3f, those by KL %.3f\n",
              exact, weighted, kl);
  const bool good = std::abs(exact - 1) < 0.02 && std::abs(kl - std::sqrt(0.19)) < 0.02 && weighted > 1.2 * kl;
  return good ? 0 : 1;
}
