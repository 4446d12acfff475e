// Fits a Gaussian to a density of your own and refines its draws: about 30 lines.
// The density is a callable that returns log p(z), up to a constant, and writes its gradient.
#include <cmath>
#include <cstdio>

#include "hone/hone.hpp"

int main() {
  // A valley: z1 ~ N(0, 1), z2 | z1 ~ N(z1² / 2, 0.5²)
  const hone::DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) {
    const double rest = (z[1] - 0.5 * z[0] * z[0]) / 0.25;
    gradient[0] = -z[0] + rest * z[0];
    gradient[1] = -rest;
    return -0.5 * z[0] * z[0] - 0.125 * rest * rest;
  });

  hone::GaussianFamily q(2, hone::Covariance::full);
  hone::FitConfig config;  // VCD, three HMC steps of five leapfrog steps
  config.draws_per_iteration = 8;
  const hone::PhiloxSource random(1);  // the seed
  hone::Fit fit(target, q, config, random);
  for (int i = 0; i < 20000; ++i) fit.step();

  double mean[2], sd[2];
  q.moments(mean, sd);
  const hone::Divergence value = hone::estimate_divergence(
      target, q, {.kernel = config.kernel, .steps = config.refine.steps, .step_size = fit.step_size(), .draws = 20000},
      random);
  std::printf("q: mean %.2f %.2f, sd %.2f %.2f\n", mean[0], mean[1], sd[0], sd[1]);
  std::printf("VCD %.3f ± %.3f: zero would be a perfect q\n", value.vcd.mean, value.vcd.se);
  return std::isfinite(value.vcd.mean) ? 0 : 1;
}
