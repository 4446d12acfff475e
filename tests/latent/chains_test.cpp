// Chains in the posteriors of a minibatch: every column in that of its own datum, whatever the threads; and gradients
// of bf16 products.

#include <gtest/gtest.h>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/refine.hpp"
#include "tests/latent/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

const DecoderConfig vae = {latent, {64, 13}, pixels, Activation::relu, Density::bernoulli};

Chains start(const LatentTarget<float>& target, const Matrix<double>& z) {
  Chains chains(z.rows(), z.cols());
  chains.z = z;
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  return chains;
}

Chains refined(const Model<float>& model, const Kernel& kernel, int threads) {
  Chains chains = start(model.target, model.z);
  Team team(threads);
  Refiner refiner(kernel, {.steps = 4, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.9}, team);
  refiner.refine(model.target, chains.view(), batch, 1, PhiloxSource(5));
  return chains;
}

const std::vector<SomeKernel> kernels = {hmc({5, 0}), hmc({5, 3}),  // jitter permutes the columns
                                         mala(), random_walk()};

TEST(LatentChains, TheBitsDoNotDependOnTheNumberOfThreads) {
  const Model<float> model(vae);
  for (const SomeKernel& kernel : kernels) {
    const Chains one = refined(model, *kernel, 1);
    for (const int threads : {2, 3}) {
      const Chains several = refined(model, *kernel, threads);
      EXPECT_EQ(one.value, several.value);
      EXPECT_TRUE(std::ranges::equal(one.z.view().flat(), several.z.view().flat()));
    }
    EXPECT_FALSE(std::ranges::equal(one.z.view().flat(), model.z.view().flat()));
  }
}

TEST(LatentChains, AColumnMovesInThePosteriorOfItsDatum) {
  const Model<float> model(vae);
  for (const SomeKernel& kernel : kernels) {
    Team team(1);
    Refiner together(*kernel, {.steps = 4, .adapt = Adapt::off, .step_size = 0.05, .acceptance = 0.9}, team);
    Chains chains = start(model.target, model.z);
    together.refine(model.target, chains.view(), batch, 1, PhiloxSource(5));
    for (const int c : {0, 1, 17, batch - 1}) {
      // the same chain alone, against a minibatch of its datum alone
      Minibatch<float> single(Density::bernoulli, pixels, 1);
      single.set<float>(0, {model.data.view().column(c), std::size_t{pixels}});
      LatentTarget<float> target(model.decoder);
      target.set_data(single, static_cast<std::uint32_t>(c));
      Chains chain(latent, 1);
      std::ranges::copy(model.z.column(c), chain.z.column(0).begin());
      const std::vector<std::uint32_t> datum = {static_cast<std::uint32_t>(c)};
      target.evaluate(chain.z, Want::both, chain.value, chain.gradient, datum);
      Refiner alone(*kernel, {.steps = 4, .adapt = Adapt::off, .step_size = 0.05, .acceptance = 0.9}, team);
      alone.refine(target, chain.view(static_cast<std::uint32_t>(c)), 1, 1, PhiloxSource(5));
      EXPECT_EQ(chain.value[0], chains.value[c]);
      EXPECT_TRUE(std::ranges::equal(chain.z.column(0), chains.z.column(c)));
    }
  }
}

TEST(LatentChains, ADatumOutsideTheMinibatchIsRefused) {
  const Model<float> model(vae);
  Matrix<double> z(latent, 1), gradient(latent, 1);
  std::vector<double> value(1);
  EXPECT_THROW(model.target.evaluate(z, Want::both, value, gradient, std::vector<std::uint32_t>{batch}),
               std::logic_error);
}

TEST(LatentChains, APointThatIsNotANumberHasNoDensity) {
  const Model<float> model(vae);
  Matrix<double> z = model.z, gradient(latent, batch);
  std::vector<double> value(batch);
  z(1, 5) = std::nan("");
  model.target.evaluate(z, Want::both, value, gradient);
  for (int c = 0; c < batch; ++c) EXPECT_EQ(value[c] == -infinity, c == 5);
}

class Bf16Chains : public testing::Test {
 protected:
  void SetUp() override {
    if (!supports_bf16()) GTEST_SKIP() << "this CPU has no bf16 products";
  }
};

// Within 1 % of a gradient's length on average over columns. A ReLU that rounds to the other side of its kink shows in
// a single column: within 10 % of its length and 2 % of the batch's largest gradient.
TEST_F(Bf16Chains, GradientAgainstFloat) {
  for (const DecoderConfig& config : configs()) {
    if (!facts_of(config.density).fused || !config.up.empty()) continue;  // no bf16
    const Model<float> exact(config), model(config, Gradients::bf16);
    Matrix<double> gradient(latent, batch), expected(latent, batch);
    model.target.evaluate(model.z, Want::gradient, {}, gradient);
    exact.target.evaluate(model.z, Want::gradient, {}, expected);
    double mean = 0, largest = 0;
    for (const double x : expected.view().flat()) largest = std::max(largest, std::abs(x));
    for (int c = 0; c < batch; ++c) {
      double error = 0, length = 0;
      for (int d = 0; d < latent; ++d) {
        error += square(gradient(d, c) - expected(d, c));
        length += square(expected(d, c));
      }
      EXPECT_LT(std::sqrt(error), 0.1 * std::sqrt(length) + 0.02 * largest);
      mean += std::sqrt(error / length) / batch;
    }
    EXPECT_LT(mean, 0.01);
    EXPECT_GT(mean, 1e-6);  // it is another function
  }
}

TEST_F(Bf16Chains, ValuesAreExactAndGradientsBesideThemTheSameFunction) {
  const Model<float> exact(vae), model(vae, Gradients::bf16);
  Matrix<double> alone(latent, batch), beside(latent, batch);
  std::vector<double> value(batch), expected(batch);
  model.target.evaluate(model.z, Want::gradient, {}, alone);
  model.target.evaluate(model.z, Want::both, value, beside);
  exact.target.evaluate(model.z, Want::value, expected, {});
  EXPECT_EQ(value, expected);
  EXPECT_TRUE(std::ranges::equal(alone.view().flat(), beside.view().flat()));
}

TEST_F(Bf16Chains, ATrajectoryReturnsToItsStart) {
  const Model<float> model(vae, Gradients::bf16);
  Matrix<double> z = model.z, p(latent, batch), slope(latent, batch);
  std::vector<double> value(batch);
  PhiloxSource(7).normals({Purpose::momentum}, p.view().flat());
  const auto add = [](double factor, const Matrix<double>& from, Matrix<double>& to) {
    for (std::size_t i = 0; i < to.view().flat().size(); ++i) to.view().flat()[i] += factor * from.view().flat()[i];
  };
  const auto trajectory = [&] {
    constexpr int steps = 5;
    constexpr double step_size = 0.05;
    model.target.evaluate(z, Want::both, value, slope);
    add(0.5 * step_size, slope, p);
    for (int l = 1; l <= steps; ++l) {
      add(step_size, p, z);
      model.target.evaluate(z, l < steps ? Want::gradient : Want::both, value, slope);
      add(l < steps ? step_size : 0.5 * step_size, slope, p);
    }
  };
  trajectory();
  double moved = 0;
  for (std::size_t i = 0; i < z.view().flat().size(); ++i)
    moved = std::max(moved, std::abs(z.view().flat()[i] - model.z.view().flat()[i]));
  EXPECT_GT(moved, 0.1);
  for (double& x : p.view().flat()) x = -x;
  trajectory();
  // z comes back to the last bits of a double; there it may round to another bf16 in rare columns
  int back = 0;
  for (int c = 0; c < batch; ++c) {
    double distance = 0;
    for (int d = 0; d < latent; ++d) distance = std::max(distance, std::abs(z(d, c) - model.z(d, c)));
    back += distance < 1e-12;
  }
  EXPECT_GE(back, batch - 1);
}

TEST(Bf16, NeedsFloats) {
  Parameters<double> parameters;
  EXPECT_THROW(Decoder<double>(vae, parameters, Gradients::bf16), InputError);
}

TEST(Bf16, WhereThereIsNoneIsAnInputError) {
  if (supports_bf16()) GTEST_SKIP() << "this CPU has bf16 products";
  Parameters<float> parameters;
  EXPECT_THROW(Decoder<float>(vae, parameters, Gradients::bf16), InputError);
}

}  // namespace
}  // namespace hone::test
