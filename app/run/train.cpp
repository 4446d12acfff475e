#include "app/run/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "app/run/train_record.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double stretch_seconds = 0.1;  // of training between looks at the clock and at `stop`

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

// make(), an engine of some kind, with errors that say which key asks for what cannot be.
template <class Make>
auto made_engine(const TrainRunConfig& config, const DataSplits& data, const Make& make) {
  if (config.batch > data.train.size())
    throw KeyError("batch", fmt::format("{} is more than the {} training data", config.batch, data.train.size()));
  try {
    return make();
  } catch (const DataError& error) {
    throw KeyError(config.binarization == Binarization::none ? "binarization" : "data",
                   fmt::format("{} ({}): {}", data.name, data.origin, error.what()));
  }
}

// Runs of one configuration. Those that an engine can train side by side at the moment are the squad: of the runs that
// are not finished those that are furthest behind, and of these as many as the engine takes.
class Training {
 public:
  Training(const TrainRunConfig& config, const std::vector<SeedRun>& runs, const TrainOptions& options)
      : config_(config), runs_(runs), options_(options) {
    resolve(config_);
    check_folders();
    data_ = load(config_, options.data_dir);
    say(fmt::format("data: {} ({} to train on)", data_.origin, data_.train.size()));
    if (data_.test.size() == 0 && config_.test.every > 0 && config_.test.every <= config_.iterations)
      say("there are no test data: no test log-likelihood on the way (test.every)");
    for (const SeedRun& run : runs_) {
      TrainRunConfig own = config_;
      own.seed = run.seed;
      records_.emplace_back(own, data_, run.folder, options);
    }
    failure_.resize(runs_.size());
    choose_squad();
    if (squad_.empty()) squad_.push_back(0);  // all are finished: the engine still says whether it could go on
    make_squad();
    for (TrainRecord& record : records_)
      if (record.iteration() > 0) record.open();
    open_squad();
  }

  std::vector<TrainOutcome> run() {
    train_to_the_end();
    std::vector<TrainOutcome> outcomes;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      guarded(i, [&] {
        if (records_[i].is_open()) records_[i].close(state_of(i));
      });
      outcomes.push_back({runs_[i], records_[i].summary(), failure_[i]});
    }
    return outcomes;
  }

 private:
  void check_folders() const {
    std::set<fs::path> seen;
    for (const SeedRun& run : runs_) {
      if (!seen.insert(run.folder).second)
        throw InputError(fmt::format("{}: two runs cannot share a folder", run.folder.string()));
      if (options_.resume == Resume::no && fs::exists(run.folder / "config.toml"))
        throw InputError(
            fmt::format("{}: there is a run in this folder already; go on with it by --resume, or name "
                        "another folder by --out",
                        run.folder.string()));
    }
  }

  bool stopped() const { return options_.stop && *options_.stop != 0; }
  void say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }
  std::int64_t iterations_made() const {
    std::int64_t sum = 0;
    for (const TrainRecord& record : records_) sum += record.iteration();
    return sum;
  }

  // What fails in one run is kept for its outcome, and the run is left as it is.
  template <class Do>
  void guarded(std::size_t run, Do work) {
    if (!failure_[run].empty()) return;
    try {
      work();
    } catch (const Error& error) {
      fail(run, error.what());
    }
  }
  void fail(std::size_t run, const std::string& why) {
    failure_[run] = fmt::format("{}\nthe last good checkpoint: {}", why, records_[run].checkpoint());
    if (runs_.size() > 1) say(fmt::format("{}: {}", runs_[run].folder.string(), failure_[run]));
  }

  bool under_way(std::size_t run) const { return failure_[run].empty() && !records_[run].finished(); }

  void choose_squad() {
    squad_.clear();
    std::uint32_t least = config_.iterations;
    goal_ = config_.iterations;
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i)) least = std::min(least, records_[i].iteration());
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i) && records_[i].iteration() == least) squad_.push_back(i);
    if (squad_.empty()) return;
    const int all = static_cast<int>(records_.size());
    const int most = options_.side_by_side > 0 ? options_.side_by_side : side_by_side(config_.engine, all);
    if (static_cast<int>(squad_.size()) >= most) return squad_.resize(most);  // no other can join
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i) && records_[i].iteration() > least) goal_ = std::min(goal_, records_[i].iteration());
  }

  void make_squad() {
    std::vector<std::uint64_t> seeds;
    for (const std::size_t i : squad_) seeds.push_back(records_[i].seed());
    engines_.reset();  // its memory, before the next takes some
    engines_ = made_engine(config_, data_, [&] {
      return make_engine_group(config_.engine, engine_config(config_), data_.train, seeds, *config_.threads);
    });
    if (const std::string device = engines_->device(); device_ != device) say("engine: " + device);
    device_ = engines_->device();
    for (std::size_t k = 0; k < squad_.size(); ++k) {
      TrainRecord& record = records_[squad_[k]];
      record.runs_on(device_);
      if (record.iteration() == 0) continue;
      try {
        engines_->restore(static_cast<int>(k), record.state());
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", record.checkpoint(), error.what()));
      }
    }
    since_checkpoint_ = {};
  }

  void open_squad() {
    for (const std::size_t i : squad_)
      guarded(i, [&] {
        if (!records_[i].is_open()) records_[i].open();
      });
  }

  // The state of a run that the engine holds and that is sound.
  std::optional<TrainState> state_of(std::size_t run) const {
    const auto found = std::ranges::find(squad_, run);
    if (found == squad_.end() || !failure_[run].empty()) return {};
    return engines_->save(static_cast<int>(found - squad_.begin()));
  }

  void train_to_the_end() {
    const auto count = static_cast<std::int64_t>(records_.size());
    Progress progress(stderr, options_.progress, "train", count > 1 ? "iterations of all runs" : "iterations",
                      count * config_.iterations);
    progress.start_at(iterations_made());
    while (!stopped() && !squad_.empty()) {
      train_squad(progress);
      if (!stopped()) change_squad();
    }
  }

  void change_squad() {
    for (const std::size_t i : squad_)
      guarded(i, [&] {
        if (records_[i].finished())
          records_[i].close(state_of(i));
        else if (auto state = state_of(i))
          records_[i].hold(std::move(*state));
      });
    choose_squad();
    if (squad_.empty()) return;
    try {
      make_squad();
      open_squad();
    } catch (const Error& error) {
      for (const std::size_t i : squad_) fail(i, error.what());
    }
  }

  // Evaluates the first test data of a run where that is due, as `hone eval` does: by an engine of its own, of which
  // training does not know. Where it is stopped it is due again when the run goes on; at the end it is not stopped.
  void test(std::size_t run) {
    const TrainRecord& record = records_[run];
    if (!record.test_due()) return;
    const auto watch = [&](int) {
      if (stopped() && !record.finished()) throw Stopped();
    };
    TrainRunConfig own = config_;
    own.seed = record.seed();
    try {
      const auto engine = make_engine(own.engine, engine_config(own), data_.train, {.threads = *own.threads});
      engine->restore(*state_of(run));
      records_[run].test(summarize(engine->evaluate(data_.test, test_evaluation(own, data_.test), watch)));
    } catch (const Stopped&) {
    } catch (const Error& error) {  // no reason to end a training
      say(fmt::format("{}: test data could not be evaluated at iteration {}: {}", runs_[run].folder.string(),
                      record.iteration(), error.what()));
    }
  }

  void train_squad(Progress& progress) {
    const auto sound = [&](std::size_t i) { return failure_[i].empty(); };
    if (engines_->iteration() < goal_)
      for (const std::size_t i : squad_) guarded(i, [&] { test(i); });  // what a stop has left to do
    while (std::ranges::any_of(squad_, sound) && engines_->iteration() < goal_ && !stopped()) {
      advance();
      progress.update(iterations_made(), note());
      const bool report = engines_->iteration() % config_.report_every == 0, save = checkpoint_due();
      for (const std::size_t i : squad_)
        guarded(i, [&] {
          if (report) records_[i].report();
          test(i);  // before the checkpoint, which would claim its row
          if (save) records_[i].save(*state_of(i));
        });
      if (save) since_checkpoint_ = {};
    }
  }

  // Trains up to the next report, checkpoint, goal, or look at the clock.
  void advance() {
    const std::uint32_t now = engines_->iteration();
    std::uint32_t count = std::min(stretch_, goal_ - now);
    for (const std::uint32_t every : {config_.report_every, config_.checkpoint_every, config_.test.every})
      if (every > 0) count = std::min(count, every - now % every);
    std::vector<TrainMetrics> metrics;
    for (const std::size_t i : squad_) metrics.push_back(records_[i].interval());
    const Stopwatch watch;
    try {
      engines_->train(count, metrics);
    } catch (const Error& error) {  // the device itself
      for (const std::size_t i : squad_)
        if (failure_[i].empty()) fail(i, error.what());
      return;
    }
    const double took = watch.seconds();
    for (std::size_t k = 0; k < squad_.size(); ++k) {
      const std::size_t i = squad_[k];
      if (!failure_[i].empty()) continue;
      const int run = static_cast<int>(k);
      if (const std::string& why = engines_->failure(run); !why.empty()) {
        fail(i, why);
        continue;
      }
      records_[i].interval() = metrics[k];
      records_[i].advance(engines_->iteration(), engines_->step_size(run), took, static_cast<int>(squad_.size()));
    }
    if (took < stretch_seconds / 2) stretch_ = std::min(2 * stretch_, 1u << 20);
    if (took > stretch_seconds) stretch_ = std::max(stretch_ / 2, 1u);
  }

  // Means over the squad.
  std::string note() const {
    Moments elbo, vcd, acceptance;
    for (const std::size_t i : squad_) {
      if (!failure_[i].empty()) continue;
      const TrainMetrics& now = records_[i].interval();
      elbo.add(now.elbo.mean());
      if (now.vcd.count() == 0) continue;
      vcd.add(now.vcd.mean());
      acceptance.add(now.acceptance.mean());
    }
    std::string text = fmt::format("elbo {:.5g}", elbo.mean());
    if (vcd.count() > 0) text += fmt::format(", vcd {:.4g}, acceptance {:.2f}", vcd.mean(), acceptance.mean());
    return text;
  }

  bool checkpoint_due() const {
    if (config_.checkpoint_every > 0 && engines_->iteration() % config_.checkpoint_every == 0) return true;
    return config_.checkpoint_minutes > 0 && since_checkpoint_.seconds() > 60 * config_.checkpoint_minutes;
  }

  TrainRunConfig config_;
  const std::vector<SeedRun>& runs_;
  const TrainOptions& options_;
  DataSplits data_;
  std::deque<TrainRecord> records_;   // one a run
  std::vector<std::string> failure_;  // likewise
  std::vector<std::size_t> squad_;    // the runs that the engine holds
  std::uint32_t goal_ = 0;            // where others join it, or the end
  std::unique_ptr<EngineGroup> engines_;
  std::string device_;
  std::uint32_t stretch_ = 1;
  Stopwatch since_checkpoint_;
};

}  // namespace

std::vector<TrainOutcome> train(const TrainRunConfig& config, const std::vector<SeedRun>& runs,
                                const TrainOptions& options) {
  if (runs.empty()) throw InputError("no run was asked for");
  return Training(config, runs, options).run();
}

TrainSummary train(const TrainRunConfig& config, const fs::path& folder, const TrainOptions& options) {
  const TrainOutcome outcome = train(config, {{config.seed, folder}}, options).front();
  if (!outcome.failure.empty()) throw Error(outcome.failure);
  return outcome.summary;
}

std::unique_ptr<TrainedModel> load_model(const fs::path& folder, const fs::path& data_dir, int threads,
                                         const std::function<void(const std::string&)>& say) {
  if (!fs::exists(folder / "config.toml"))
    throw InputError(fmt::format("{}: not the folder of a training run (no config.toml)", folder.string()));
  auto model = std::make_unique<TrainedModel>();
  model->config = read_train_config(folder / "config.toml", threads);
  const auto found = find_checkpoint(folder, say);
  if (!found) throw InputError(fmt::format("{}: the run has no checkpoint", folder.string()));
  model->data = load(model->config, data_dir);
  check_identity(found->path, found->checkpoint.identity, identity_of(model->config, model->data.train));
  model->engine = made_engine(model->config, model->data, [&] {
    return make_engine(model->config.engine, engine_config(model->config), model->data.train, {.threads = threads});
  });
  model->engine->restore(found->checkpoint.state);
  return model;
}

}  // namespace hone
