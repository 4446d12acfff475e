#include "hone/run/paper/table1.hpp"

#include <fmt/format.h>

#include <numeric>

#include "hone/run/paper/configs.hpp"

namespace hone {
namespace {

constexpr int usual_steps = 8;

// tab:results_llh
double paper_figure(const std::string& model, const std::string& data, const std::string& objective) {
  struct Entry {
    const char *model, *data;
    double kl, hoffman, vcd;
  };
  static constexpr Entry table[] = {{"lmf", "mnist", -111.20, -103.61, -101.26},
                                    {"lmf", "fashion", -127.43, -121.86, -121.11},
                                    {"vae", "mnist", -98.46, -96.23, -95.86},
                                    {"vae", "fashion", -124.63, -117.74, -117.65}};
  for (const Entry& entry : table)
    if (model == entry.model && data == entry.data)
      return objective == "kl" ? entry.kl : objective == "hoffman" ? entry.hoffman : entry.vcd;
  throw Error("the paper has no such figure");
}

TrainingCell cell_of(const std::string& name, int steps, std::uint32_t iterations, const TrainingChoice& choice) {
  const ScaleSettings scale = settings_of(choice.scale);
  TrainRunConfig config = paper_config(name);
  if (config.objective.kind != ObjectiveKind::kl) config.steps = steps;
  config.iterations = iterations;
  config.engine = choice.engine;
  config.threads = choice.threads;
  resolve(config);
  std::vector<std::uint64_t> seeds = choice.seeds;
  if (seeds.empty()) {
    seeds.resize(scale.seeds);
    std::iota(seeds.begin(), seeds.end(), std::uint64_t{1});
  }
  return {training_cell_id(name, steps, iterations), config, seeds, scale.evaluation,
          steps == usual_steps ? scale.annealing : std::nullopt};
}

}  // namespace

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
        rows.push_back({model, data, objective, paper_figure(model, data, objective),
                        cell_of(name, usual_steps, iterations, choice)});
      }
  return rows;
}

std::vector<Fig2Point> fig2_points(const TrainingChoice& choice) {
  const std::uint32_t iterations = settings_of(choice.scale).fig2_iterations;
  std::vector<Fig2Point> points;
  for (const std::string data : {"mnist", "fashion"}) {
    points.push_back(
        {data, {}, paper_figure("vae", data, "kl"), cell_of("vae-" + data + "-kl", usual_steps, iterations, choice)});
    for (const int steps : paper_steps) {
      std::optional<double> paper;
      if (steps == usual_steps) paper = paper_figure("vae", data, "vcd");
      points.push_back({data, steps, paper, cell_of("vae-" + data + "-vcd", steps, iterations, choice)});
    }
  }
  return points;
}

}  // namespace hone
