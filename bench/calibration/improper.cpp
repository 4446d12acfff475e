#include <cmath>

#include "bench/calibration/densities.hpp"

// Posteriors without a finite mass, and one that has it by a hair: no draws of them may be called fit for use.
namespace hone::calibration {
namespace {

Case without_answer(const std::string& name, const Maker& make, const std::string& why) {
  return {.name = name, .kind = "improper", .make = make, .how = why, .truth = {}};
}

// A normal, and a coordinate that the density does not depend on.
std::unique_ptr<Posterior> flat() {
  return make_posterior(
      [](At z, Slope gradient) {
        gradient[0] = -z[0], gradient[1] = 0;
        return -0.5 * z[0] * z[0];
      },
      {"x", "free"});
}

// (1 + x²)^(−power / 2): no finite mass up to power 1.
Maker tail(double power) {
  return [power] {
    return make_posterior(
        [power](At z, Slope gradient) {
          gradient[0] = -z[0];
          gradient[1] = -power * z[1] / (1 + z[1] * z[1]);
          return -0.5 * z[0] * z[0] - 0.5 * power * std::log1p(z[1] * z[1]);
        },
        {"x", "tailed"});
  };
}

// Group means with a flat prior on log tau: the density does not fall as tau goes to 0.
std::unique_ptr<Posterior> flat_log_tau() {
  const Values y = {0.3, -0.8, 1.1, 0.2, -0.5};
  return posterior(list({"tau"}, numbered("z", y.size())), positive_at(y.size() + 1, {0}), [=](At x, Slope slope) {
    double value = -std::log(x[0]);
    slope[0] -= 1 / x[0];
    for (std::size_t j = 0; j < y.size(); ++j) {
      double by = 0, ignored = 0;
      value += normal(y[j], x[0] * x[1 + j], 1, by, ignored) + normal_prior(x[1 + j], 1, slope[1 + j]);
      slope[0] += by * x[1 + j], slope[1 + j] += by * x[0];
    }
    return value;
  });
}

// Separated outcomes and a flat prior: the slope goes to infinity.
std::unique_ptr<Posterior> flat_separated() {
  const Values at = {-2, -1.2, -0.7, -0.1, 0.4, 0.9, 1.3, 2.2};
  return make_posterior(
      [=](At z, Slope gradient) {
        double value = 0;
        gradient[0] = gradient[1] = 0;
        for (const double x : at) {
          double by = 0;
          value += bernoulli_logit(x > 0 ? 1 : 0, z[0] + z[1] * x, by);
          gradient[0] += by, gradient[1] += by * x;
        }
        return value;
      },
      {"intercept", "slope"});
}

}  // namespace

std::vector<Case> improper() {
  return {without_answer("improper_flat", flat, "constant in one coordinate"),
          without_answer("improper_tail", tail(0.8), "a tail of power 0.8"),
          without_answer("improper_tail_by_a_hair", tail(1.0), "a tail of power 1"),
          without_answer("nearly_improper_tail", tail(1.1), "a tail of power 1.1: 5 % beyond 10¹²"),
          without_answer("improper_log_tau", flat_log_tau, "flat in log tau towards 0"),
          without_answer("improper_separated", flat_separated, "separated outcomes, flat prior")};
}

}  // namespace hone::calibration
