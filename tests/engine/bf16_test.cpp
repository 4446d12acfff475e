// Trajectories whose gradients come from bf16 products are reversible and leave the posterior invariant: every kick
// uses the same function, and the accept step is exact.

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/tensor/triangular.hpp"
#include "tests/latent/support.hpp"
#include "tests/support/replay.hpp"

namespace hone::test {
namespace {

class Bf16Trajectory : public testing::Test {
 protected:
  void SetUp() override {
    if (!supports_bf16()) GTEST_SKIP() << "this CPU has no bf16 products";
  }
};

constexpr int leapfrog = 5;

struct Phase {
  Matrix<double> z, momentum;
};

// The leapfrog map; the first kick may use another target.
Phase integrate(const Target& first, const Target& others, Phase phase, double step_size) {
  Matrix<double> slope(phase.z.rows(), phase.z.cols());
  const auto kick = [&](const Target& target, double size) {
    target.evaluate(phase.z, Want::gradient, {}, slope);
    for (int c = 0; c < slope.cols(); ++c)
      for (int d = 0; d < slope.rows(); ++d) phase.momentum(d, c) += size * slope(d, c);
  };
  kick(first, 0.5 * step_size);
  for (int l = 1; l <= leapfrog; ++l) {
    for (int c = 0; c < slope.cols(); ++c)
      for (int d = 0; d < slope.rows(); ++d) phase.z(d, c) += step_size * phase.momentum(d, c);
    kick(others, l < leapfrog ? step_size : 0.5 * step_size);
  }
  return phase;
}

double largest_difference(const Matrix<double>& a, const Matrix<double>& b) {
  double largest = 0;
  for (int c = 0; c < a.cols(); ++c)
    for (int d = 0; d < a.rows(); ++d) largest = std::max(largest, std::abs(a(d, c) - b(d, c)));
  return largest;
}

// Goes forward, flips the momentum, goes back: the distance from the start.
double way_off(const Target& first, const Target& others, const Phase& start, double step_size) {
  Phase end = integrate(first, others, start, step_size);
  for (double& p : end.momentum.view().flat()) p = -p;
  Phase back = integrate(first, others, std::move(end), step_size);
  for (double& p : back.momentum.view().flat()) p = -p;
  return std::max(largest_difference(back.z, start.z), largest_difference(back.momentum, start.momentum));
}

TEST_F(Bf16Trajectory, ReturnsToItsStart) {
  const Model<float> model({latent, {64, 13}, pixels}, Gradients::bf16);
  const LatentTarget<float>& rounded = model.target;
  LatentTarget<float> exact(model.decoder);
  exact.set_data(model.data);
  Phase start{model.z, Matrix<double>(latent, batch)};
  PhiloxSource(4).normals({Purpose::momentum}, start.momentum.view().flat());
  EXPECT_LT(way_off(rounded, rounded, start, 0.05), 1e-11);
  EXPECT_GT(way_off(exact, rounded, start, 0.05), 1e-6);  // the kicks at the two ends use different functions
}

// Hmc with this target computes the same map.
TEST_F(Bf16Trajectory, HmcMakesTheSameTrajectory) {
  const Model<float> model({latent, {64, 13}, pixels}, Gradients::bf16);
  Chains chains(latent, batch);
  chains.z = model.z;
  model.target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  ReplaySource random;
  Phase start{model.z, Matrix<double>(latent, batch)};
  for (int c = 0; c < batch; ++c) {
    std::vector<double> momentum(latent);
    PhiloxSource(4).normals({Purpose::momentum, 0, static_cast<std::uint32_t>(c)}, momentum);
    std::ranges::copy(momentum, start.momentum.column(c).begin());
    random.record({Purpose::momentum, 1, static_cast<std::uint32_t>(c)}, momentum);
    random.record({Purpose::accept, 1, static_cast<std::uint32_t>(c)}, {1e-300});  // accepts
  }
  Hmc({leapfrog}).step(model.target, {.random = random, .iteration = 1, .step = 0, .step_size = 0.05}, chains.view());
  const Phase end = integrate(model.target, model.target, start, 0.05);
  EXPECT_LT(largest_difference(chains.z, end.z), 1e-12);
}

// Starts from exact posterior draws of a linear Gaussian model; their moments must not change. One datum, many chains.
TEST_F(Bf16Trajectory, LeavesThePosteriorInvariant) {
  constexpr int chains_count = 20'000, units = 2, seen = 6;
  Parameters<float> parameters;
  Decoder<float> decoder({units, {}, seen, Activation::relu, Density::gaussian}, parameters, Gradients::bf16);
  const float weights[units][seen] = {{0.11f, -0.07f, 0.05f, 0.02f, -0.13f, 0.09f},
                                      {0.03f, 0.12f, -0.08f, 0.1f, 0.01f, -0.04f}};
  std::copy_n(&weights[0][0], units * seen, parameters.values().begin());
  decoder.pack();
  const std::vector<double> x = {0.2, -0.1, 0.15, 0.05, -0.2, 0.1};
  Minibatch<float> data(Density::gaussian, seen, chains_count);
  for (int c = 0; c < chains_count; ++c) data.set<double>(c, x);
  LatentTarget<float> target(decoder, Gradients::bf16);
  target.set_data(data);

  // precision M = I + W Wᵀ / s² = L Lᵀ, mean M⁻¹ W x / s²
  Matrix<double> m(units, units);
  std::vector<double> mean(units);
  for (int i = 0; i < units; ++i) {
    for (int j = 0; j < units; ++j)
      for (int p = 0; p < seen; ++p) m(i, j) += 100.0 * weights[i][p] * weights[j][p];
    m(i, i) += 1;
    for (int p = 0; p < seen; ++p) mean[i] += 100.0 * weights[i][p] * x[p];
  }
  const std::vector<double> lower = cholesky(m);
  solve_lower(lower, mean, mean);
  solve_lower_transposed(lower, mean, mean);

  Chains chains(units, chains_count);
  PhiloxSource(8).normals({Purpose::draw}, chains.z.view().flat());
  for (int c = 0; c < chains_count; ++c) {
    solve_lower_transposed(lower, chains.z.column(c), chains.z.column(c));
    for (int d = 0; d < units; ++d) chains.z(d, c) += mean[d];
  }
  const Matrix<double> start = chains.z;
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  Team team(1);
  Refiner refiner(Hmc({leapfrog}), {.steps = 10, .adapt = Adapt::off, .step_size = 0.45, .acceptance = 0.9}, team);
  const Refinement refinement = refiner.refine(target, chains.view(), chains_count, 1, PhiloxSource(9));
  EXPECT_GT(refinement.acceptance, 0.6);
  EXPECT_LT(refinement.acceptance, 0.99);  // the accept step has something to do

  const auto shift = [&](auto statistic) {  // in standard errors
    Moments moments;
    for (int c = 0; c < chains_count; ++c) moments.add(statistic(chains.z.column(c)) - statistic(start.column(c)));
    return moments.mean() / moments.estimate().se;
  };
  EXPECT_LT(std::abs(shift([](auto z) { return z[0]; })), 4);
  EXPECT_LT(std::abs(shift([](auto z) { return z[1]; })), 4);
  EXPECT_LT(std::abs(shift([&](auto z) { return square(z[0] - mean[0]); })), 4);
  EXPECT_LT(std::abs(shift([&](auto z) { return square(z[1] - mean[1]); })), 4);
  EXPECT_LT(std::abs(shift([&](auto z) { return (z[0] - mean[0]) * (z[1] - mean[1]); })), 4);
}

}  // namespace
}  // namespace hone::test
