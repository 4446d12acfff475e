#include "app/run/iteration_bench.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "app/data/synthetic.hpp"
#include "app/run/json.hpp"
#include "app/run/method_settings.hpp"
#include "app/run/progress.hpp"
#include "hone/engine/engines.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model.hpp"
#include "hone/tensor/peak.hpp"

namespace hone {
namespace {

constexpr int repeats = 9;
constexpr double seconds_in_all = 2;
constexpr int data_count = 2000;

struct PassFlops {
  double all = 0;
  double first = 0;  // of the layer next to the inputs
};

PassFlops pass_flops(const NetworkConfig& network) {
  PassFlops flops;
  for (std::size_t l = 0; l < network.depth(); ++l) {
    const Windows* w = network.windows(l);
    flops.all += w ? 2.0 * w->count() * w->depth() * w->coarse : 2.0 * network.below(l) * network.units(l);
    if (l == 0) flops.first = flops.all;
  }
  return flops;
}

// Passes through the decoder that refining one chain takes.
IterationFlops refinement_passes(const TrainConfig& config) {
  const double t = config.refine.steps;
  if (!config.objective->refines()) return {};
  const double evaluations = t * config.kernel->evaluations_per_step();
  if (!wants_gradient(config.kernel->wants())) return {evaluations, 0};
  const double gradients = evaluations;
  if (config.precision != Precision::bf16_trajectory) return {2 * gradients, 0};
  return {t, 2 * (gradients + 1)};  // exact values for the accept steps; the first kick's gradient is another one
}

// Random bits of a shape, in each group of categories a single 1; without a shape, generated images.
DataSet bench_data(const TrainRunConfig& run) {
  const ModelConfig& model = run.train.model;
  if (!run.shape && model.categories == 0) return synthetic_data(1, 0, data_count);
  const std::vector<int> sizes = run.shape.value_or(std::vector{28, 28});
  if (sizes.size() < 2 || sizes.size() > 3) throw KeyError("shape", "expected rows and columns, and perhaps channels");
  const ImageShape shape{sizes[0], sizes[1], sizes.size() > 2 ? sizes[2] : 1};
  if (1.0 * shape.rows * shape.cols * shape.channels > 1e5)
    throw KeyError("shape", "a datum would have more than 100,000 values");
  std::vector<double> values(static_cast<std::size_t>(data_count) * static_cast<std::size_t>(shape.pixels()));
  PhiloxSource(1).uniforms({Purpose::synthesize}, values);
  const auto group = static_cast<std::size_t>(std::max(1, model.categories));
  for (std::size_t i = values.size(); i-- > 0;) {  // a group begins with the number that chooses
    const double chosen = std::floor(values[i - i % group] * static_cast<double>(group));
    values[i] = group == 1 ? values[i] < 0.5 : static_cast<double>(i % group) == chosen;
  }
  return packed_if_binary(DataSet(std::move(values), shape));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct TimedIterations {
  double seconds;  // of an iteration of all runs: the median of the repeats
  std::uint32_t count;
};

TimedIterations time_iterations(Engine& engine, const IterationBenchConfig& config) {
  std::vector<TrainMetrics> ignored(config.runs);
  const auto time = [&](std::uint32_t iterations) {
    const Stopwatch watch;
    engine.train(iterations, ignored);
    return watch.seconds() / iterations;
  };
  time(3);
  const double pace = time(10);
  const double wanted = config.iterations ? *config.iterations : seconds_in_all / pace;
  const auto each = static_cast<std::uint32_t>(std::max(1.0, wanted / repeats));
  std::vector<double> seconds(repeats);
  for (double& s : seconds) s = time(each);
  return {median(seconds), each * repeats};
}

// The setting `shape` of training, with help that does not mention files.
Settings::Entry shape_of_random_bits(Settings::Entry entry) {
  entry.help = "rows and columns of a datum of random bits, and perhaps channels, such as 28,28";
  entry.default_text = "generated images of 28 x 28";
  return entry;
}

}  // namespace

Settings iteration_bench_settings(IterationBenchConfig& config) {
  Settings s;
  const Settings all = train_settings(config.run);
  for (const Settings::Entry& entry : all.entries())
    for (const char* key :
         {"model", "objective", "likelihood", "categories", "steps", "leapfrog", "latent", "hidden", "encoder_hidden",
          "family", "rank", "channels", "shape", "batch", "optimizer", "precision", "engine", "threads"})
      if (entry.key == key) s.add(entry.key == "shape" ? shape_of_random_bits(entry) : entry);
  s.add("iterations", config.iterations, Bounds::between(repeats, 1e9), "iterations to time, in nine repeats",
        "as many as take two seconds");
  s.add("runs", config.runs, Bounds::between(1, 1000), "runs that differ by their seeds, side by side on a device");
  return s;
}

IterationFlops iteration_flops(const TrainConfig& config, ImageShape image) {
  const ModelConfig& model = config.model;
  const std::vector<Windows> down = convolutions(model, image), up(down.rbegin(), down.rend());
  const PassFlops decoder = pass_flops({.inputs = model.latent,
                                        .hidden = model.hidden,
                                        .outputs = outputs_of(model.density(), {image.pixels(), model.categories}),
                                        .up = up});
  const AmortizedShape q = config.family->shape(model.latent);
  const auto encoder = [&](int outputs) {
    const PassFlops pass =
        pass_flops({.inputs = image.pixels(), .hidden = model.encoder_hidden, .outputs = outputs, .down = down});
    return 3 * pass.all - pass.first;
  };
  const IterationFlops passes = refinement_passes(config);
  const double learning = 3 * decoder.all - decoder.first + encoder(q.location) + encoder(q.scale);
  return {config.batch * (decoder.all * (2 + passes.exact) + learning), config.batch * decoder.all * passes.bf16};
}

IterationBench bench_iteration(IterationBenchConfig config) {
  if (config.run.channels) config.run.train.model.initial = InitialWeights::scaled;  // the paper's has no convolutions
  resolve(config.run);
  const DataSet data = bench_data(config.run);
  const TrainConfig& train = config.run.train;
  std::vector<std::uint64_t> seeds(config.runs);
  std::iota(seeds.begin(), seeds.end(), train.seed);
  const auto engine = make_engine(config.run.engine, train, data, {.seeds = seeds, .threads = *config.run.threads});
  const IterationFlops flops = iteration_flops(train, data.shape());
  const bool on_cpu = config.run.engine == EngineKind::cpu;
  const auto peaks = [&] {
    if (!on_cpu) return std::pair(0.0, 0.0);
    return std::pair(measure_fma_peak(), flops.bf16 > 0 ? measure_bf16_peak() : 0.0);
  };
  const auto together = [&] {
    if (!on_cpu) return 0.0;
    Team team(*config.run.threads);
    return measure_fma_peak_together(team);
  };
  const auto before = peaks();
  const double together_before = together();
  const TimedIterations timed = time_iterations(*engine, config);

  const Settings settings = train_settings(config.run);
  IterationBench result;
  result.model = settings.text("model");
  result.objective = settings.text("objective");
  result.precision = settings.text("precision");
  result.engine = settings.text("engine");
  result.level = on_cpu ? name_of(simd_level()) : cuda_support().own_device().name;
  if (!on_cpu) result.device = engine->device();
  result.likelihood = facts_of(train.model.density()).name;
  result.family = in_words(config.run.family);
  result.latent = train.model.latent;
  result.shape = {data.shape().rows, data.shape().cols, data.shape().channels};
  result.channels = train.model.channels;
  result.encoder_hidden = train.model.encoder_hidden;
  result.hidden = train.model.hidden;
  result.batch = train.batch;
  result.steps = train.refine.steps;
  result.threads = *config.run.threads;
  result.iterations = timed.count;
  result.runs = config.runs;
  result.us_per_iteration = 1e6 * timed.seconds / config.runs;
  result.gflops = flops.all() / result.us_per_iteration * 1e-3;
  const auto after = peaks();
  result.float_peak_gflops = result.threads * std::max(before.first, after.first);
  result.bf16_peak_gflops = result.threads * std::max(before.second, after.second);
  result.peak_together_gflops = 0.5 * (together_before + together());
  result.bf16_share = flops.bf16 / flops.all();
  const double bf16_time = flops.bf16 > 0 ? flops.bf16 / result.bf16_peak_gflops : 0;
  if (!on_cpu) return result;
  result.peak_gflops = flops.all() / (flops.exact / result.float_peak_gflops + bf16_time);
  result.fraction_of_peak = result.gflops / result.peak_gflops;
  return result;
}

std::string IterationBench::to_json() const {
  Json json = {{"model", model},
               {"objective", objective},
               {"likelihood", likelihood},
               {"family", family},
               {"shape", shape},
               {"latent", latent},
               {"hidden", hidden},
               {"encoder_hidden", encoder_hidden},
               {"channels", channels},
               {"batch", batch},
               {"steps", steps},
               {"precision", precision},
               {"engine", engine},
               {"level", level},
               {"threads", threads},
               {"runs", runs},
               {"iterations", iterations},
               {"us_per_iteration", us_per_iteration},
               {"us_per_iteration_of_all_runs", us_per_iteration * runs},
               {"gflops", gflops}};
  if (peak_gflops == 0) {
    json["peak_gflops"] = json["fraction_of_peak"] = nullptr;
    json["peak_is"] = "not measured on a device";
    json["device"] = device;
    return json.dump(2) + "\n";
  }
  json.update({{"peak_gflops", peak_gflops},
               {"fraction_of_peak", fraction_of_peak},
               {"peak_together_gflops", peak_together_gflops},
               {"peak_is", bf16_share > 0 ? "float32 and bf16 fused multiply-adds, by their shares of the FLOPs"
                                          : "float32 fused multiply-adds"}});
  if (bf16_share > 0) {
    json["bf16_share"] = bf16_share;
    json["float_peak_gflops"] = float_peak_gflops;
    json["bf16_peak_gflops"] = bf16_peak_gflops;
  }
  return json.dump(2) + "\n";
}

}  // namespace hone
