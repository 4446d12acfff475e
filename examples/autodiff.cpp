// A posterior without a hand-written gradient: Eigen's AutoDiff (Debian: libeigen3-dev) derives it from the formula.
// Growth of a plant: height ~ N(limit (1 − exp(−rate·week)), noise); limit, rate and noise are positive.
#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <cstdio>
#include <unsupported/Eigen/AutoDiff>

#include "hone/hone.hpp"

namespace {

constexpr int dimension = 3;
constexpr std::array<double, 8> week = {1, 2, 3, 4, 6, 8, 11, 15};
constexpr std::array<double, 8> height = {5.1, 8.9, 12.2, 13.6, 17.5, 19.0, 20.8, 21.1};

// The model, for plain numbers and for numbers that carry their gradient: log p(height, z) up to a constant.
template <class T>
T log_density(const std::array<T, dimension>& z) {
  using std::exp, std::log;
  const T limit = exp(z[0]), rate = exp(z[1]), noise = exp(z[2]);
  T value = z[0] + z[1] + z[2];                                               // Jacobians of the three logarithms
  value -= 0.5 * (limit - 20) * (limit - 20) / 100 + 2 * rate + 0.5 * noise;  // priors: N(20, 10), Exp(2), Exp(½)
  for (std::size_t i = 0; i < week.size(); ++i) {
    const T rest = (height[i] - limit * (1 - exp(-rate * week[i]))) / noise;
    value -= 0.5 * rest * rest + log(noise);
  }
  return value;
}

double with_gradient(std::span<const double> z, std::span<double> gradient) {
  using Number = Eigen::AutoDiffScalar<Eigen::Matrix<double, dimension, 1>>;
  std::array<Number, dimension> point;
  for (int i = 0; i < dimension; ++i) point[i] = Number(z[i], dimension, i);
  const Number value = log_density(point);
  for (int i = 0; i < dimension; ++i) gradient[i] = value.derivatives()[i];
  return value.value();
}

}  // namespace

int main() {
  const auto posterior =
      hone::make_posterior(with_gradient, {"log_limit", "log_rate", "log_noise"}, {"limit", "rate", "noise"},
                           [](std::span<const double> z, std::span<double> values) {
                             for (int i = 0; i < dimension; ++i) values[i] = std::exp(z[i]);
                           });

  const hone::CheckedFit fit = hone::fit_and_check(*posterior, {});
  for (const hone::ParameterSummary& value : fit.parameters)
    std::printf("%-6s %7.3f ± %.3f (q: %7.3f ± %.3f)\n", value.name.c_str(), value.mean, value.sd, value.q_mean,
                value.q_sd);
  std::printf("verdict: %s\n", hone::name_of(fit.judgement.verdict).c_str());
  for (const std::string& reason : fit.judgement.reasons) std::printf("  %s\n", reason.c_str());
  return 0;
}
