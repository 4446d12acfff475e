#include "app/run/paper/table1.hpp"

#include <fmt/format.h>

#include <numeric>

#include "app/run/paper/configs.hpp"

namespace hone {
namespace {

constexpr int usual_steps = 8;

double paper_value(const TrainRunConfig& config) {
  TrainRunConfig copy = config;
  const Settings settings = train_settings(copy);
  for (const PaperCell& cell : paper_cells())
    if (cell.model == settings.text("model") && cell.data == settings.text("data") &&
        cell.objective == settings.text("objective"))
      return cell.log_likelihood;
  throw Error("the paper has no such value");
}

TrainingCell cell_of(const std::string& name, int steps, std::uint32_t iterations, const TrainingChoice& choice) {
  const ScaleSettings scale = settings_of(choice.scale);
  TrainRunConfig config = paper_config(name);
  if (make_objective(config.objective)->refines()) config.train.refine.steps = steps;
  config.iterations = iterations;
  config.engine = choice.engine;
  config.threads = choice.threads;
  resolve(config);
  return {.id = training_cell_id(name, steps, iterations),
          .config = config,
          .seeds = seeds_or(choice.seeds, scale.seeds),
          .evaluation = scale.evaluation,
          .annealing = steps == usual_steps ? scale.annealing : std::nullopt};
}

}  // namespace

std::vector<std::uint64_t> seeds_or(const std::vector<std::uint64_t>& seeds, int count) {
  if (!seeds.empty()) return seeds;
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  return all;
}

std::string training_cell_id(const std::string& config_name, int steps, std::uint32_t iterations) {
  std::string id = config_name;
  if (steps != usual_steps) id += fmt::format("-t{}", steps);
  if (iterations != paper_iterations) id += fmt::format("-{}", iterations);
  return id;
}

std::vector<Table1Row> table1_rows(const TrainingChoice& choice) {
  const std::uint32_t iterations = settings_of(choice.scale).table1_iterations;
  std::vector<Table1Row> rows;
  for (const std::string model : {"lmf", "vae"})
    for (const std::string data : {"mnist", "fashion"})
      for (const std::string objective : {"kl", "hoffman", "vcd"}) {
        const std::string name = fmt::format("{}-{}-{}", model, data, objective);
        const TrainingCell cell = cell_of(name, usual_steps, iterations, choice);
        rows.push_back(
            {.model = model, .data = data, .objective = objective, .paper = paper_value(cell.config), .cell = cell});
      }
  return rows;
}

std::vector<Fig2Point> fig2_points(const TrainingChoice& choice) {
  const std::uint32_t iterations = settings_of(choice.scale).fig2_iterations;
  std::vector<Fig2Point> points;
  for (const std::string data : {"mnist", "fashion"}) {
    const TrainingCell level = cell_of("vae-" + data + "-kl", usual_steps, iterations, choice);
    points.push_back({.data = data, .steps = {}, .paper = paper_value(level.config), .cell = level});
    for (const int steps : paper_steps) {
      const TrainingCell cell = cell_of("vae-" + data + "-vcd", steps, iterations, choice);
      std::optional<double> paper;
      if (steps == usual_steps) paper = paper_value(cell.config);
      points.push_back({.data = data, .steps = steps, .paper = paper, .cell = cell});
    }
  }
  return points;
}

}  // namespace hone
