#include "app/run/paper/training_cells.hpp"

#include <fmt/format.h>

#include <cmath>

#include "app/data/registry.hpp"
#include "app/run/json.hpp"
#include "app/run/train_record.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// A run's summary.json: empty if there is none, not an object if it is damaged. Throws InputError if the run and the
// cell have different settings.
Json summary_of(const fs::path& folder, const TrainingCell& cell, std::uint64_t seed) {
  if (const fs::path config = folder / "config.toml"; fs::exists(config)) {
    TrainRunConfig wanted = cell.config;
    wanted.train.seed = seed;
    check_identity(config, identity_of(read_train_config(config, *wanted.threads)), identity_of(wanted));
  }
  const fs::path path = folder / "summary.json";
  if (!fs::exists(path)) return Json::object();
  return parse_json(read_file(path));
}

double number(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_number() ? json[key].get<double>() : std::nan("");
}

std::uint32_t iterations_made(const Json& summary) {
  const double made = number(summary, "iterations");
  return std::isnan(made) ? 0 : static_cast<std::uint32_t>(made);
}

// The evaluation in a summary, if it is the one that the cell requests.
const Json* evaluation_of(const Json& summary, const TrainingCell& cell) {
  if (!summary.is_object() || !cell.evaluation) return nullptr;
  const auto found = summary.find("test_log_likelihood");
  if (found == summary.end() || !found->is_object()) return nullptr;
  if (number(*found, "iteration") != cell.config.iterations || number(*found, "samples") != cell.evaluation->samples)
    return nullptr;
  const int points = cell.evaluation->points.value_or(data_set_named(cell.config.data).test);
  return number(*found, "points") == points ? &*found : nullptr;
}

// Whether that evaluation includes the annealing that the cell requests.
bool annealed(const Json& evaluation, const TrainingCell& cell) {
  if (!cell.annealing) return true;
  const auto ais = evaluation.find("ais");
  return ais != evaluation.end() && ais->is_object() && number(*ais, "steps") == cell.annealing->steps &&
         number(*ais, "chains") == cell.annealing->chains;
}

bool needs_evaluation(const Json& summary, const TrainingCell& cell) {
  if (!cell.evaluation) return false;
  const Json* found = evaluation_of(summary, cell);
  return !found || !annealed(*found, cell);
}

}  // namespace

fs::path TrainingCell::folder(const fs::path& experiment, std::uint64_t seed) const {
  return experiment / "cells" / fmt::format("{}-seed{}", id, seed);
}

TrainingState state_of(const fs::path& experiment, const TrainingCell& cell) {
  TrainingState state;
  for (const std::uint64_t seed : cell.seeds) {
    const Json summary = summary_of(cell.folder(experiment, seed), cell, seed);
    const std::uint32_t made = iterations_made(summary);
    if (made > cell.config.iterations)
      throw InputError(
          fmt::format("{}: has already made {} iterations, more than the {} requested; choose another "
                      "folder with --out",
                      cell.folder(experiment, seed).string(), made, cell.config.iterations));
    state.damaged += !summary.is_object();
    state.seeds_begun += made > 0;
    state.iterations_left += cell.config.iterations - made;
    state.evaluations_left += needs_evaluation(summary, cell);
  }
  return state;
}

std::string TrainingState::text(const TrainingCell& cell) const {
  if (done()) return "done";
  if (damaged > 0) return fmt::format("damaged: {}", damaged);
  const double all = static_cast<double>(cell.config.iterations) * static_cast<double>(cell.seeds.size());
  if (iterations_left > 0)
    return seeds_begun == 0 ? "to do"
                            : fmt::format("trained {:.0f} %", 100 * (1 - static_cast<double>(iterations_left) / all));
  return evaluations_left == static_cast<int>(cell.seeds.size()) ? "to be evaluated"
                                                                 : fmt::format("to be evaluated: {}", evaluations_left);
}

std::optional<TestResults> test_results(const fs::path& experiment, const TrainingCell& cell, std::uint64_t seed) {
  const Json summary = summary_of(cell.folder(experiment, seed), cell, seed);
  const Json* found = evaluation_of(summary, cell);
  if (!found) return {};
  TestResults results;
  results.best = {number(*found, "value"), number(*found, "se")};
  results.mixture = {number(*found, "mixture"), number(*found, "mixture_se")};
  if (const auto list = found->find("proposals"); list != found->end() && list->is_array() && !list->empty())
    results.q = list->front().is_number() ? list->front().get<double>() : std::nan("");
  if (const auto ais = found->find("ais"); ais != found->end() && ais->is_object())
    results.ais = {number(*ais, "log_likelihood"), number(*ais, "se")};
  results.binarization = summary.value("binarization", "");
  results.engine = summary.value("engine", "");
  results.seconds = number(summary, "seconds");
  results.side_by_side = static_cast<int>(number(summary, "runs_side_by_side"));
  constexpr std::uint32_t first_judged = 100;  // before it, as at the scale smoke, nothing has been learned
  results.went_wrong = summary.contains("trouble") && iterations_made(summary) >= first_judged;
  return results;
}

}  // namespace hone
