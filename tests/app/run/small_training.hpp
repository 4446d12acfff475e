#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/run/run_folder.hpp"
#include "app/run/train.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tiny_training.hpp"

// Small trainings, and how to compare two of them.
namespace hone::test {

namespace fs = std::filesystem;

inline TrainRunConfig small() {
  TrainRunConfig config = tiny_training(40);
  config.latent = 3;
  config.hidden = {9};
  config.train.model.encoder_hidden = {8};
  config.batch = 12;
  config.train.shared_until = 10;
  config.report_every = 7;
  return config;
}

inline TrainSummary run(const TrainRunConfig& config, const fs::path& folder, Resume resume = Resume::no) {
  return train(config, folder, {.resume = resume});
}

inline std::string error_of(const TrainRunConfig& config, const fs::path& folder, Resume resume = Resume::no) {
  try {
    run(config, folder, resume);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline std::string without_times(const fs::path& summary) {
  auto json = nlohmann::json::parse(read_file(summary));
  for (const char* key : {"seconds", "us_per_iteration", "threads", "runs_side_by_side"}) json.erase(key);
  return json.dump();
}

// metrics.csv without its column of seconds.
inline std::string rows_of(const fs::path& folder) {
  std::istringstream file(read_file(folder / "metrics.csv"));
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(','), second = line.find(',', first + 1);
    text += line.substr(0, first) + line.substr(second) + "\n";
  }
  return text;
}

inline void expect_same_run(const fs::path& a, const fs::path& b) {
  EXPECT_EQ(read_file(a / checkpoint_name), read_file(b / checkpoint_name));
  EXPECT_EQ(without_times(a / "summary.json"), without_times(b / "summary.json"));
  EXPECT_EQ(rows_of(a), rows_of(b));
}

inline std::vector<SeedRun> seeds_in(const fs::path& folder, const std::vector<std::uint64_t>& seeds) {
  std::vector<SeedRun> runs;
  for (const std::uint64_t seed : seeds) runs.push_back({seed, folder / ("seed-" + std::to_string(seed))});
  return runs;
}

}  // namespace hone::test
