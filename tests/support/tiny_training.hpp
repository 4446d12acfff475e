#pragma once

#include "app/run/train_config.hpp"

namespace hone::test {

// A training that takes a moment, on synthetic data.
inline TrainRunConfig tiny_training(std::uint32_t iterations) {
  TrainRunConfig config = paper_run_config();
  config.data = "synthetic";
  config.latent = 2;
  config.hidden = {5};
  config.train.model.encoder_hidden = {5};
  config.batch = 10;
  config.train.refine.steps = 2;
  config.iterations = iterations;
  config.threads = 1;
  return config;
}

}  // namespace hone::test
