// Eight schools, from a density with a gradient written by hand to the verdict on its fit. The parameters are mu,
// tau > 0 and theta = mu + tau·eta; the coordinates of the fit are mu, log tau and eta, which are unbounded.
#include <array>
#include <cmath>
#include <cstdio>

#include "hone/hone.hpp"

namespace {

constexpr int schools = 8;
constexpr std::array<double, schools> y = {28, 8, -3, 7, -1, 1, 18, 12}, sigma = {15, 10, 16, 11, 9, 11, 10, 18};

// log p(y, z) up to a constant, with the logarithm of the Jacobian of tau = exp(z[1]); writes its gradient.
double eight_schools(std::span<const double> z, std::span<double> gradient) {
  const double mu = z[0], tau = std::exp(z[1]);
  double value = -mu * mu / 50 - std::log1p(tau * tau / 25) + z[1];  // mu ~ N(0, 5), tau ~ Cauchy⁺(0, 5)
  double by_tau = -2 * tau / (25 + tau * tau);
  gradient[0] = -mu / 25;
  for (int j = 0; j < schools; ++j) {
    const double eta = z[2 + j], rest = (y[j] - mu - tau * eta) / sigma[j];
    value -= 0.5 * (rest * rest + eta * eta);  // y ~ N(theta, sigma), eta ~ N(0, 1)
    gradient[0] += rest / sigma[j];
    by_tau += eta * rest / sigma[j];
    gradient[2 + j] = tau * rest / sigma[j] - eta;
  }
  gradient[1] = by_tau * tau + 1;
  return value;
}

// mu, tau and theta of a point.
void natural_scale(std::span<const double> z, std::span<double> values) {
  values[0] = z[0];
  values[1] = std::exp(z[1]);
  for (int j = 0; j < schools; ++j) values[2 + j] = values[0] + values[1] * z[2 + j];
}

}  // namespace

int main() {
  std::vector<std::string> coordinates = {"mu", "log_tau"}, names = {"mu", "tau"};
  for (int j = 1; j <= schools; ++j) {
    coordinates.push_back("eta." + std::to_string(j));
    names.push_back("theta." + std::to_string(j));
  }
  const auto posterior = hone::make_posterior(eight_schools, coordinates, names, natural_scale);

  // Is the gradient that of the value? Differences of the value tell.
  const std::string complaint = hone::gradient_complaint(*posterior, std::vector(2 + schools, 0.1), coordinates);
  if (!complaint.empty()) std::printf("%s\n", complaint.c_str());

  const hone::CheckedFit fit = hone::fit_and_check(*posterior, {});
  std::printf("%-8s %16s %20s\n", "", "q", "refined");
  for (const hone::ParameterSummary& value : fit.parameters)
    std::printf("%-8s %8.2f ± %5.2f %12.2f ± %5.2f\n", value.name.c_str(), value.q_mean, value.q_sd, value.mean,
                value.sd);
  std::printf("verdict: %s\n", hone::name_of(fit.judgement.verdict).c_str());
  for (const std::string& reason : fit.judgement.reasons) std::printf("  %s\n", reason.c_str());
  return 0;
}
