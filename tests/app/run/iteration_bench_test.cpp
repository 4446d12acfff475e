#include "app/run/iteration_bench.hpp"

#include <gtest/gtest.h>

#include "hone/tensor/simd.hpp"
#include "tests/support/methods.hpp"

namespace hone {
namespace {

// The paper's VAE: "41 gradients of the decoder for 100 chains, about 3.3 GFLOP, plus encoder and update".
TEST(IterationFlops, AreThoseOfTheMatrixProducts) {
  TrainConfig config = TrainConfig::paper();
  const double pass = 2.0 * (10 * 200 + 200 * 200 + 200 * 784), first = 2.0 * 10 * 200;
  const double encoder = 2.0 * (784 * 200 + 200 * 200 + 200 * 10), encoder_first = 2.0 * 784 * 200;
  const double rest = 3 * pass - first + 2 * (3 * encoder - encoder_first);
  EXPECT_EQ(iteration_flops(config, {28, 28}).all(), 100 * (41 * 2 * pass + rest));
  EXPECT_EQ(iteration_flops(config, {28, 28}).bf16, 0);
  config.precision = Precision::bf16_trajectory;
  EXPECT_EQ(iteration_flops(config, {28, 28}).all(), 100 * (41 * 2 * pass + 8 * pass + 2 * pass + rest));
  EXPECT_EQ(iteration_flops(config, {28, 28}).bf16, 100 * 41 * 2 * pass);
  config.kernel = test::mala();
  EXPECT_EQ(iteration_flops(config, {28, 28}).bf16, 100 * 9 * 2 * pass);
  EXPECT_EQ(iteration_flops(config, {28, 28}).exact, 100 * (2 * pass + 8 * pass + rest));
  config.objective = test::by_kl();
  EXPECT_EQ(iteration_flops(config, {28, 28}).all(), 100 * (2 * pass + rest));
}

// A convolution multiplies every window of 16 · fine numbers by coarse columns, either way.
TEST(IterationFlops, CountTheWindowsOfConvolutions) {
  TrainConfig config = TrainConfig::paper();
  config.objective = test::by_kl();
  config.model.initial = InitialWeights::scaled;
  config.model.hidden = config.model.encoder_hidden = {200};
  config.model.channels = {32, 64};
  const double windows = 2.0 * (256 * 48 * 32 + 64 * 512 * 64), first = 2.0 * 10 * 200,
               dense = first + 2.0 * 200 * 4096;
  const double pass = dense + windows, encoder_first = 2.0 * 256 * 48 * 32;
  EXPECT_EQ(iteration_flops(config, {32, 32, 3}).all(),
            100 * (2 * pass + 3 * pass - first + 2 * (3 * pass - encoder_first)));
}

TEST(IterationBench, Measures) {
  IterationBenchConfig config;
  config.run.latent = 3;
  config.run.hidden = {8};
  config.run.train.model.encoder_hidden = {8};
  config.run.train.refine.steps = 2;
  config.run.threads = 1;
  config.iterations = 18;
  const IterationBench result = bench_iteration(config);
  EXPECT_GT(result.us_per_iteration, 0);
  EXPECT_GT(result.peak_gflops, 0);
  EXPECT_GT(result.peak_together_gflops, 0);
  EXPECT_EQ(result.fraction_of_peak, result.gflops / result.peak_gflops);
  EXPECT_EQ(result.iterations, 18u);
  EXPECT_EQ(result.runs, 1);
  EXPECT_EQ(result.family, "diagonal");
  config.runs = 2;
  config.run.family.kind = AmortizedKind::low_rank;
  EXPECT_EQ(bench_iteration(config).runs, 2);
  EXPECT_EQ(bench_iteration(config).family, "low-rank, rank 2");
  config.run.channels = {2};
  config.run.shape = {4, 6, 3};
  config.run.likelihood = Density::categorical;
  config.run.categories = 3;
  EXPECT_EQ(bench_iteration(config).shape, (std::vector{4, 6, 3}));
  EXPECT_DOUBLE_EQ(result.peak_gflops, result.float_peak_gflops);
  EXPECT_EQ(result.bf16_share, 0);
}

// A mix of products is compared with the peak of the same mix, which lies between the peaks of its parts.
TEST(IterationBench, MixesThePeaksOfBf16AndFloat) {
  if (!supports_bf16()) GTEST_SKIP() << "this CPU has no bf16 products";
  IterationBenchConfig config;
  config.run.train.precision = Precision::bf16_trajectory;
  config.run.threads = 1;
  config.iterations = 9;
  const IterationBench result = bench_iteration(config);
  EXPECT_GT(result.bf16_share, 0.7);
  EXPECT_GT(result.bf16_peak_gflops, 0);
  EXPECT_NEAR(result.peak_gflops,
              1 / (result.bf16_share / result.bf16_peak_gflops + (1 - result.bf16_share) / result.float_peak_gflops),
              1e-9 * result.peak_gflops);
  EXPECT_EQ(result.fraction_of_peak, result.gflops / result.peak_gflops);
}

}  // namespace
}  // namespace hone
