#include "hone/run/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/data/fingerprint.hpp"
#include "hone/engine/engines.hpp"
#include "hone/run/json.hpp"
#include "hone/run/metrics_file.hpp"
#include "hone/run/run_folder.hpp"
#include "hone/run/train_pictures.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double stretch_seconds = 0.1;  // of training between looks at the clock and at `stop`

// What defines a run: its configuration, and the data that this led to on this machine.
std::map<std::string, std::string> identity_of(const TrainRunConfig& config, const DataSet& train) {
  std::map<std::string, std::string> identity = identity_of(config);
  identity["data.sha256"] = fingerprint(train);
  return identity;
}

// Whatever is wrong with the data is a KeyError of the key that asks for them.
DataSplits load(const TrainRunConfig& config, const fs::path& data_dir) {
  try {
    return load_data(data_request(config, data_dir));
  } catch (const KeyError&) {
    throw;
  } catch (const InputError& error) {
    throw KeyError("data", error.what());
  }
}

std::unique_ptr<Engine> make_engine(const TrainRunConfig& config, const DataSplits& data) {
  if (config.batch > data.train.size())
    throw KeyError("batch", fmt::format("{} is more than the {} training data", config.batch, data.train.size()));
  try {
    return make_engine(config.engine, engine_config(config), data.train, {.threads = *config.threads});
  } catch (const DataError& error) {
    throw KeyError(config.binarization == Binarization::none ? "binarization" : "data",
                   fmt::format("{} ({}): {}", data.name, data.origin, error.what()));
  }
}

// The resolved configuration of a run folder.
TrainRunConfig read_config(const fs::path& path, int threads) {
  TrainRunConfig config;
  Settings settings = train_settings(config);
  settings.read_file(path);
  config.threads = threads;
  try {
    resolve(config);
  } catch (const KeyError& error) {
    throw settings.located(error);
  }
  return config;
}

class Run {
 public:
  Run(const TrainRunConfig& given, const TrainOptions& options) : config_(resolved(given)), options_(options) {
    if (options.resume == Resume::no && fs::exists(options.folder / "config.toml"))
      throw InputError(fmt::format("{}: there is a run in this folder already; go on with it by --resume, or name "
                                   "another folder by --out", options.folder.string()));
    data_ = load(config_, options.data_dir);
    say(fmt::format("data: {} ({} to train on)", data_.origin, data_.train.size()));
    engine_ = make_engine(config_, data_);
    if (const std::string device = engine_->device(); !device.empty()) say("engine: " + device);
    checkpoint_.identity = identity_of(config_, data_.train);
    folder_.emplace(options.folder, options.resume == Resume::yes ? Reuse::run : Reuse::nothing);
    lock_.emplace(folder_->path());
    if (options.resume == Resume::yes) restore();
    started_at_ = engine_->iteration();
    folder_->remove_unfinished();
    if (damaged_) set_aside_damaged(folder_->path());
    folder_->write("config.toml", train_settings(config_).to_toml());
    metrics_.emplace(folder_->path() / "metrics.csv", counters().reported);
    clock_.emplace(folder_->path() / "clock.csv", started_at_);
  }

  TrainSummary run() {
    try {
      return train_to_the_end();
    } catch (const Error& error) {
      throw Error(fmt::format("{}\nthe last good checkpoint: {}", error.what(), good_));
    }
  }

 private:
  TrainSummary train_to_the_end() {
    Progress progress(stderr, options_.progress, "train", "iterations", config_.iterations);
    progress.start_at(started_at_);
    while (engine_->iteration() < config_.iterations && !stopped()) {
      advance();
      progress.update(engine_->iteration(), note());
      if (engine_->iteration() % config_.report_every == 0) report();
      if (checkpoint_due()) save();
    }
    if (counters().interval.elbo.count() > 0)  // a row of what there is; the interval itself goes on when resumed
      metrics_->row(engine_->iteration(), seconds(), counters().interval, engine_->step_size());
    if (engine_->iteration() != saved_at_) save();
    const TrainSummary result = summary();
    if (engine_->iteration() > started_at_ || !fs::exists(folder_->path() / "summary.json"))  // else all is said
      folder_->write("summary.json", with_evaluation(result));
    if (engine_->iteration() > started_at_ || !fs::exists(folder_->path() / "figures" / "images.json"))
      write_pictures(*folder_, config_, data_, engine_->save());
    return result;
  }

  static TrainRunConfig resolved(TrainRunConfig config) {
    resolve(config);
    return config;
  }

  RunCounters& counters() { return checkpoint_.counters; }
  const RunCounters& counters() const { return checkpoint_.counters; }
  bool stopped() const { return options_.stop && *options_.stop != 0; }
  double seconds() const { return clock_->seconds() + trained_seconds_; }
  void say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }

  void restore() {
    const auto found = find_checkpoint(options_.folder, [this](const std::string& text) { say(text); });
    if (!found) return start_anew();
    check_identity(found->path, found->checkpoint.identity, checkpoint_.identity);
    if (found->checkpoint.state.iteration > config_.iterations)
      throw KeyError("iterations", fmt::format("{} has made {} iterations already, and {} are asked for",
                                               found->path.string(), found->checkpoint.state.iteration,
                                               config_.iterations));
    try {
      engine_->restore(found->checkpoint.state);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", found->path.string(), error.what()));
    }
    checkpoint_ = found->checkpoint;
    saved_at_ = engine_->iteration();
    damaged_ = found->path.filename() == previous_checkpoint_name;
    good_ = fmt::format("{}, iteration {}", found->path.string(), saved_at_);
    say(fmt::format("going on from {}", good_));
  }

  // A run that was ended before its first checkpoint may begin again, but not as another one.
  void start_anew() const {
    const fs::path path = options_.folder / "config.toml";
    if (fs::exists(path)) check_identity(path, identity_of(read_config(path, *config_.threads)), identity_of(config_));
    say("no checkpoint: starting anew");
  }

  // Trains up to the next report, checkpoint, end, or look at the clock.
  void advance() {
    const std::uint32_t now = engine_->iteration();
    std::uint32_t count = std::min(stretch_, config_.iterations - now);
    for (const std::uint32_t every : {config_.report_every, config_.checkpoint_every})
      if (every > 0) count = std::min(count, every - now % every);
    const Stopwatch watch;
    engine_->train(count, counters().interval);
    const double took = watch.seconds();
    trained_seconds_ += took;
    if (took < stretch_seconds / 2) stretch_ = std::min(2 * stretch_, 1u << 20);
    if (took > stretch_seconds) stretch_ = std::max(stretch_ / 2, 1u);
  }

  std::string note() const {
    const TrainMetrics& now = counters().interval;
    std::string text = fmt::format("elbo {:.5g}", now.elbo.mean());
    if (now.vcd.count() > 0)
      text += fmt::format(", vcd {:.4g}, acceptance {:.2f}", now.vcd.mean(), now.acceptance.mean());
    return text;
  }

  void report() {
    RunCounters& c = counters();
    metrics_->row(engine_->iteration(), seconds(), c.interval, engine_->step_size());
    c.rejected_nonfinite += c.interval.rejected_nonfinite;
    c.dropped_draws += c.interval.dropped_draws;
    c.last = c.interval;
    c.interval = {};
    c.reported = engine_->iteration();
  }

  bool checkpoint_due() const {
    if (config_.checkpoint_every > 0 && engine_->iteration() % config_.checkpoint_every == 0) return true;
    return config_.checkpoint_minutes > 0 && since_checkpoint_.seconds() > 60 * config_.checkpoint_minutes;
  }

  void save() {
    checkpoint_.state = engine_->save();
    metrics_->sync();  // a checkpoint claims the rows before it
    clock_->row(engine_->iteration(), seconds());
    write_checkpoint(folder_->path(), checkpoint_);
    checkpoint_.state.arrays.clear();
    saved_at_ = engine_->iteration();
    good_ = fmt::format("{}, iteration {}", (folder_->path() / checkpoint_name).string(), saved_at_);
    since_checkpoint_ = {};
  }

  TrainSummary summary() const {
    TrainRunConfig copy = config_;
    const Settings settings = train_settings(copy);
    const RunCounters& c = counters();
    const TrainMetrics& shown = c.interval.elbo.count() > 0 ? c.interval : c.last;
    const Estimate unknown{std::nan(""), std::nan("")};
    TrainSummary s;
    s.model = settings.text("model");
    s.data = data_.name;
    s.binarization = data_.binarization;
    s.objective = settings.text("objective");
    s.kernel = settings.text("kernel");
    s.precision = settings.text("precision");
    s.engine = settings.text("engine");
    s.alpha = config_.objective.alpha;
    s.latent = *config_.latent;
    s.steps = config_.steps;
    s.leapfrog = config_.kernel.leapfrog;
    s.batch = config_.batch;
    s.threads = *config_.threads;
    s.seed = config_.seed;
    s.iterations = engine_->iteration();
    s.finished = s.iterations == config_.iterations;
    s.seconds = seconds();
    s.us_per_iteration = s.iterations > 0 ? 1e6 * s.seconds / s.iterations : std::nan("");
    s.elbo = shown.elbo.count() > 0 ? shown.elbo.estimate() : unknown;
    s.vcd = shown.vcd.count() > 0 ? shown.vcd.estimate() : unknown;
    s.acceptance = shown.acceptance.count() > 0 ? shown.acceptance.mean() : std::nan("");
    s.step_size = engine_->step_size();
    s.rejected_nonfinite = c.rejected_nonfinite + c.interval.rejected_nonfinite;
    s.dropped_draws = c.dropped_draws + c.interval.dropped_draws;
    s.training_data = data_.train.size();
    s.device = engine_->device();
    return s;
  }

  // summary.json, with what `hone eval` found of the same state.
  std::string with_evaluation(const TrainSummary& summary) const {
    const fs::path path = folder_->path() / "summary.json";
    const std::string text = summary.to_json();
    if (!fs::exists(path)) return text;
    const Json old = parse_json(read_file(path));
    if (!old.is_object() || !old.contains("test_log_likelihood") || !old.contains("iterations") ||
        old["iterations"] != summary.iterations)
      return text;
    Json json = parse_json(text);
    json["test_log_likelihood"] = old["test_log_likelihood"];
    return json.dump(2) + "\n";
  }

  TrainRunConfig config_;
  const TrainOptions& options_;
  DataSplits data_;
  std::unique_ptr<Engine> engine_;
  Checkpoint checkpoint_;  // its state is filled in for saving alone
  std::optional<RunFolder> folder_;
  std::optional<FolderLock> lock_;
  std::optional<MetricsFile> metrics_;
  std::optional<ClockFile> clock_;
  std::uint32_t started_at_ = 0, saved_at_ = 0, stretch_ = 1;
  double trained_seconds_ = 0;
  Stopwatch since_checkpoint_;
  std::string good_ = "none yet";
  bool damaged_ = false;
};

}  // namespace

TrainSummary train(const TrainRunConfig& config, const TrainOptions& options) { return Run(config, options).run(); }

std::unique_ptr<TrainedModel> load_model(const fs::path& folder, const fs::path& data_dir, int threads,
                                         const std::function<void(const std::string&)>& say) {
  if (!fs::exists(folder / "config.toml"))
    throw InputError(fmt::format("{}: not the folder of a training run (no config.toml)", folder.string()));
  auto model = std::make_unique<TrainedModel>();
  model->config = read_config(folder / "config.toml", threads);
  const auto found = find_checkpoint(folder, say);
  if (!found) throw InputError(fmt::format("{}: the run has no checkpoint", folder.string()));
  model->data = load(model->config, data_dir);
  check_identity(found->path, found->checkpoint.identity, identity_of(model->config, model->data.train));
  model->engine = make_engine(model->config, model->data);
  model->engine->restore(found->checkpoint.state);
  return model;
}

}  // namespace hone
