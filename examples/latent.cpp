// Trains a small VAE on data held in memory and prints the log-likelihood of unseen data: about 30 lines.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "hone/hone.hpp"

// Binary images of 8 × 8 pixels: a bright row or a bright column, a few pixels flipped.
hone::DataSet stripes(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> pixels;
  for (int n = 0; n < count; ++n) {
    const unsigned line = random() % 8, upright = random() % 2;
    for (unsigned i = 0; i < 64; ++i) pixels.push_back(((upright ? i % 8 : i / 8) == line) != (random() % 50 == 0));
  }
  return hone::packed_if_binary(hone::DataSet(std::move(pixels), {8, 8}, 1));
}

int main() {
  const hone::DataSet train = stripes(2000, 1), test = stripes(100, 2);
  hone::TrainConfig config;  // the paper's, except for the size
  config.model.latent = 4;
  config.model.hidden = config.model.encoder_hidden = {32};
  config.rate_mean = config.rate_scale = config.rate_model = 5e-3;
  const auto engine = hone::make_engine(hone::EngineKind::cpu, config, train, {.threads = 2});
  for (int report = 0; report < 4; ++report) {
    hone::TrainMetrics metrics;
    engine->train(250, metrics);
    std::printf("iteration %4u: ELBO %8.2f, VCD %8.2f\n", engine->iteration(), metrics.elbo.mean(), metrics.vcd.mean());
  }
  hone::EvaluationConfig evaluation;
  evaluation.samples = 1000;
  const auto summary = hone::summarize(engine->evaluate(test, evaluation, {}));
  std::printf("test log-likelihood %.2f ± %.2f per datum\n", summary.mixture.mean, summary.mixture.se);
  return std::isfinite(summary.mixture.mean) ? 0 : 1;
}
