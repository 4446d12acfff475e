#include "app/run/paper/pace.hpp"

#include "app/data/synthetic.hpp"
#include "app/run/iteration_bench.hpp"
#include "app/run/progress.hpp"
#include "hone/engine/engines.hpp"

namespace hone {
namespace {

constexpr int data_count = 2000;
constexpr int paper_test_points = 10000;
constexpr double enough_seconds = 0.1;
constexpr double loading_seconds = 0.5;  // time to load the data before training or evaluating

// The settings that the time of an iteration depends on.
std::string kind_of(const TrainRunConfig& given, int runs) {
  TrainRunConfig config = given;
  const Settings settings = train_settings(config);
  std::string text = std::to_string(runs);
  for (const char* key : {"model", "objective", "kernel", "steps", "leapfrog", "latent", "hidden", "encoder_hidden",
                          "batch", "precision", "engine", "threads"})
    text += "," + settings.text(key);
  return text;
}

}  // namespace

Pace::Pace() : data_(synthetic_data(1, 0, data_count)) {}

double Pace::seconds_per_iteration(const TrainRunConfig& config, int runs) {
  const int together = side_by_side(config.engine, runs);
  const std::string kind = kind_of(config, together);
  if (const auto found = known_.find(kind); found != known_.end()) return found->second * runs / together;
  std::vector<std::uint64_t> seeds;
  for (int i = 1; i <= together; ++i) seeds.push_back(static_cast<std::uint64_t>(i));
  const auto engine = make_engine(config.engine, config.train, data_, {.seeds = seeds, .threads = *config.threads});
  std::vector<TrainMetrics> ignored(seeds.size());
  engine->train(1, ignored);
  double each = 0;
  for (std::uint32_t count = 1;; count *= 2) {
    const Stopwatch watch;
    engine->train(count, ignored);
    each = watch.seconds() / count;
    if (each * count > enough_seconds) break;
  }
  known_[kind] = each;
  return each * runs / together;
}

double Pace::evaluation_seconds(const TrainingCell& cell) {
  const TrainConfig& train = cell.config.train;
  const EvaluationConfig& evaluation = *cell.evaluation;
  const double rate = iteration_flops(train, data_.shape()).all() / seconds_per_iteration(cell.config, 1);
  double pass = 0;  // FLOPs of one point through the decoder
  int below = train.model.latent;
  std::vector<int> widths = train.model.hidden;
  widths.push_back(data_.dimension());
  for (const int width : widths) {
    pass += 2.0 * below * width;
    below = width;
  }
  double chain = 2.0 * (evaluation.burn_in + evaluation.kept) * cell.config.kernel.leapfrog;
  if (cell.annealing) chain += 2.0 * cell.annealing->steps * cell.annealing->leapfrog * cell.annealing->chains;
  const double draws = static_cast<double>(proposal_count) * evaluation.samples;
  return evaluation.points.value_or(paper_test_points) * pass * (chain + draws) / rate;
}

double Pace::seconds(const TrainingCell& cell, const TrainingState& state) {
  const auto seeds = static_cast<int>(cell.seeds.size());
  double total = 0;
  if (state.iterations_left > 0)
    total += loading_seconds +
             static_cast<double>(state.iterations_left) / seeds * seconds_per_iteration(cell.config, seeds);
  if (cell.evaluation && state.evaluations_left > 0)
    total += state.evaluations_left * (loading_seconds + evaluation_seconds(cell));
  return total;
}

}  // namespace hone
