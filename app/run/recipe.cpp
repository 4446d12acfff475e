#include "app/run/recipe.hpp"

#include <fmt/format.h>

#include <sstream>

#include "hone/base/error.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {
namespace {

// What the bits of results depend on: the instruction level, or the device of the cuda engine.
std::string machine_of(const TrainRunConfig& config) {
  if (config.engine != EngineKind::cuda) return fmt::format("instruction level {}", name_of(simd_level()));
  const CudaSupport cuda = cuda_support();
  return cuda.missing.empty() ? cuda.own_device().name : "no device";
}

}  // namespace

std::string recipe_of(const TrainRunConfig& config, const std::vector<std::uint64_t>& seeds) {
  TrainRunConfig copy = config;
  return fmt::format("{}\n{}\n{}", machine_of(config), fmt::join(seeds, " "), train_settings(copy).to_toml());
}

std::unique_ptr<Engine> engine_of(const std::string& recipe, const DataSet& train, Ranks& ranks) {
  std::istringstream text(recipe);
  std::string machine, seed_line;
  std::getline(text, machine);
  std::getline(text, seed_line);
  std::vector<std::uint64_t> seeds;
  std::istringstream list(seed_line);
  for (std::uint64_t seed; list >> seed;) seeds.push_back(seed);
  TrainRunConfig config;
  train_settings(config).read_text(recipe.substr(static_cast<std::size_t>(text.tellg())),
                                   "the configuration of rank 0");
  resolve(config);
  if (machine != machine_of(config))
    throw InputError(
        fmt::format("this rank computes on {}, but rank 0 on {}, and their results differ in the last bits; {}",
                    machine_of(config), machine,
                    machine.starts_with("instruction level")
                        ? "set the environment variable HONE_SIMD of all ranks to the lower of the two"
                        : "ranks need devices of one kind"));
  return make_engine(config.engine, config.train, train, {.seeds = std::move(seeds), .threads = *config.threads},
                     {.ranks = &ranks});
}

}  // namespace hone
