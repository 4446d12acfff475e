#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/run/methods.hpp"
#include "app/run/progress.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/settings.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/toys.hpp"

namespace hone {

enum class FamilyKind { gaussian, gaussian_full, mixture, mixture_full };

// One toy experiment of the paper's section 4.1. `resolve` derives what is not set as in the paper and the authors'
// code.
struct ToyConfig {
  Toy target = Toy::gaussian;
  FamilyKind family = FamilyKind::gaussian;
  int components = 2;
  ObjectiveConfig objective;
  KernelConfig kernel;
  int steps = 3;
  Adapt adapt = Adapt::inside;
  std::optional<double> step_size;
  std::optional<double> acceptance;
  std::optional<std::uint32_t> iterations;
  int draws_per_iteration = 1;
  OptimizerConfig optimizer;
  std::optional<std::uint32_t> weights_from;
  double start_sd = 0.1;
  int value_draws = 10000;
  std::uint64_t seed = 1;
  int threads = 1;
};

// Every setting of a toy with its key, its help and what it takes.
Settings toy_settings(ToyConfig& config);

// Derives what is not set; an impossible combination is a KeyError.
void resolve(ToyConfig& config);

// "toy-banana-mixture-vcd-seed3"
std::string toy_run_name(const ToyConfig& config);

// The initial q: means drawn from N(0, I) by the seed alone (the same for every objective), standard deviations
// start_sd.
std::unique_ptr<Family> starting_family(const ToyConfig& config);

// What summary.json of a toy holds.
struct ToyResult {
  std::string target, family, objective, kernel;
  double alpha = 1;
  std::uint64_t seed = 0;
  std::uint32_t iterations = 0;
  std::vector<double> mean, sd;  // of the whole q, one per dimension
  std::vector<double> weights;   // of a mixture's components
  std::vector<std::vector<double>> component_means, component_sds;
  std::vector<double> parameters;        // θ, enough to rebuild q
  Estimate vcd, elbo;                    // estimated afresh with a frozen step size; vcd is the α = 1 value
  double acceptance = 0, step_size = 0;  // of those estimates
  std::int64_t rejected_nonfinite = 0, dropped_draws = 0;  // of training and of those estimates
  std::string trouble;                                     // what went wrong; empty: nothing
  double seconds = 0, iterations_per_second = 0;

  std::string to_json() const;
  static ToyResult from_json(const std::string& text, const std::filesystem::path& origin);
};

// Fits one toy. Writes config.toml, metrics.csv and summary.json into `folder`, unless it is null.
ToyResult run_toy(const ToyConfig& config, const RunFolder* folder, Progress* progress);

}  // namespace hone
