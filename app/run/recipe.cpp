#include "app/run/recipe.hpp"

#include <fmt/format.h>

#include <sstream>

#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {

std::string recipe_of(const TrainRunConfig& config, const std::vector<std::uint64_t>& seeds) {
  TrainRunConfig copy = config;
  return fmt::format("{}\n{}\n{}", name_of(simd_level()), fmt::join(seeds, " "), train_settings(copy).to_toml());
}

std::unique_ptr<Engine> engine_of(const std::string& recipe, const DataSet& train, Ranks& ranks) {
  std::istringstream text(recipe);
  std::string level, seed_line;
  std::getline(text, level);
  std::getline(text, seed_line);
  if (level != name_of(simd_level()))
    throw InputError(
        fmt::format("this machine computes at instruction level {} and rank 0 at {}, which has other bits; set the "
                    "environment variable HONE_SIMD of all ranks to the lower of the two",
                    name_of(simd_level()), level));
  std::vector<std::uint64_t> seeds;
  std::istringstream list(seed_line);
  for (std::uint64_t seed; list >> seed;) seeds.push_back(seed);
  TrainRunConfig config;
  train_settings(config).read_text(recipe.substr(static_cast<std::size_t>(text.tellg())),
                                   "the configuration of rank 0");
  resolve(config);
  return make_engine(config.engine, config.train, train,
                     {.seeds = std::move(seeds), .threads = *config.threads, .ranks = &ranks});
}

}  // namespace hone
