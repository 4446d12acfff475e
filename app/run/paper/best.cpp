#include "app/run/paper/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/run/paper/configs.hpp"

namespace hone {
namespace {

constexpr int full_seeds = 5;
constexpr int step_counts[] = {8, 25};  // the paper's t, and one that takes up to three times as long

double best_of_paper(const TrainRunConfig& config) {
  TrainRunConfig copy = config;
  const Settings settings = train_settings(copy);
  double best = -std::numeric_limits<double>::infinity();
  for (const PaperCell& cell : paper_cells())
    if (cell.model == settings.text("model") && cell.data == settings.text("data"))
      best = std::max(best, cell.log_likelihood);
  return best;
}

TrainRunConfig shortened(TrainRunConfig config, std::uint32_t iterations) {
  const auto share = [&](std::uint32_t value) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) * iterations / paper_iterations);
  };
  if (iterations < paper_iterations) {
    config.objective.ramp = {share(config.objective.ramp.from), share(config.objective.ramp.until)};
    if (config.train.decay_every > 0) config.train.decay_every = std::max(1u, share(config.train.decay_every));
    config.train.warmup.until = share(config.train.warmup.until);
  }
  config.iterations = iterations;
  return config;
}

}  // namespace

std::vector<BestRow> best_rows(const TrainingChoice& choice) {
  const ScaleSettings scale = settings_of(choice.scale);
  const auto seeds = seeds_or(choice.seeds, choice.scale == Scale::full ? full_seeds : scale.seeds);
  std::vector<BestRow> rows;
  for (const int steps : step_counts)
    for (const std::string model : {"lmf", "vae"})
      for (const std::string data : {"mnist", "fashion"}) {
        const std::string name = fmt::format("{}-{}", model, data);
        TrainRunConfig config = shortened(shipped_config("best/" + name + ".toml"), scale.table1_iterations);
        config.train.refine.steps = steps;
        config.engine = choice.engine;
        config.threads = choice.threads;
        resolve(config);
        rows.push_back({.model = model,
                        .data = data,
                        .paper = best_of_paper(config),
                        .cell = {.id = training_cell_id("best-" + name, steps, config.iterations),
                                 .config = config,
                                 .seeds = seeds,
                                 .evaluation = scale.evaluation,
                                 .annealing = scale.annealing}});
      }
  return rows;
}

}  // namespace hone
