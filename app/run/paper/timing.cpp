#include "app/run/paper/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/data/load.hpp"
#include "app/run/json.hpp"
#include "app/run/paper/configs.hpp"
#include "app/run/paper/pace.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"

namespace hone {
namespace {

constexpr std::uint32_t blocks = 40;

void time_point(const TrainRunConfig& config, const std::string& text, std::uint32_t iterations,
                const TimingOptions& options, const RunFolder& folder) {
  const Timing timing = time_in_turns({config}, options.load(config.data).train, iterations, options.stop).front();
  const Json json = {{"iterations", timing.iterations},
                     {"blocks", timing.seconds.size()},
                     {"seconds_per_iteration", quantile(timing.seconds, 0.5)},
                     {"lower_quartile", quantile(timing.seconds, 0.25)},
                     {"upper_quartile", quantile(timing.seconds, 0.75)}};
  folder.write("config.toml", text);
  folder.write("summary.json", json.dump(2) + "\n");
}

}  // namespace

double quantile(std::vector<double> values, double probability) {
  std::ranges::sort(values);
  const double place = probability * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double above = values[std::min(below + 1, values.size() - 1)];
  return values[below] + (place - static_cast<double>(below)) * (above - values[below]);
}

std::vector<Timing> time_in_turns(const std::vector<TrainRunConfig>& configs, const DataSet& data,
                                  std::uint32_t iterations, const std::atomic<int>* stop) {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<Timing> timings(configs.size());
  const std::uint32_t block = std::max(1u, iterations / blocks);
  TrainMetrics ignored;
  for (const TrainRunConfig& config : configs) {
    engines.push_back(make_engine(config.engine, config.train, data, {.seeds = {1}, .threads = *config.threads}));
    engines.back()->train(std::max(2u, block), {&ignored, 1});
  }
  for (std::uint32_t made = 0; made < iterations; made += block) {
    if (stop && *stop != 0) throw Stopped();
    for (std::size_t i = 0; i < engines.size(); ++i) {
      const Stopwatch watch;
      engines[i]->train(block, {&ignored, 1});
      timings[i].seconds.push_back(watch.seconds() / block);
      timings[i].iterations += block;
    }
  }
  return timings;
}

std::vector<Fig3Point> fig3_points(Scale scale, const TimingOptions& options) {
  const std::uint32_t iterations = settings_of(scale).fig3_iterations;
  const std::string no_device = cuda_support().missing;
  std::vector<Fig3Point> points;
  for (const EngineKind kind : {EngineKind::cpu, EngineKind::cuda})
    for (const std::string data : {"mnist", "fashion"})
      for (const int steps : paper_steps) {
        TrainRunConfig config = paper_config("vae-" + data + "-vcd");
        config.train.refine.steps = steps;
        config.engine = kind;
        config.threads = 1;
        resolve(config);
        const std::string engine = kind == EngineKind::cpu ? "cpu" : "cuda";
        const std::string text =
            fmt::format("# timed: {} iterations\n{}", iterations, train_settings(config).to_toml());
        const auto run = [=](const RunFolder& folder) { time_point(config, text, iterations, options, folder); };
        Fig3Point point{.data = data,
                        .engine = engine,
                        .data_set = config.data,
                        .steps = steps,
                        .no_device = kind == EngineKind::cpu ? "" : no_device,
                        .cell = {.id = fmt::format("fig3-{}-{}-t{}", data, engine, steps), .config = text, .run = run}};
        if (point.here() && options.pace)
          point.cell.seconds = options.pace->seconds_per_iteration(config, 1) * iterations;
        points.push_back(std::move(point));
      }
  return points;
}

}  // namespace hone
