#include "app/run/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "app/run/rank_pace.hpp"
#include "app/run/suited_data.hpp"
#include "app/run/train_record.hpp"
#include "app/run/trained_model.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "hone/engine/lead.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr double stretch_seconds = 0.1;  // training time between checks of the clock and of `stop`

// Ranks use the cpu engine unless the user asks for the other one.
void use_cpu(TrainRunConfig& config) {
  if (config.engine == EngineKind::automatic) config.engine = EngineKind::cpu;
}

// Trains runs of one configuration. The squad is the group that the engine trains at the moment: the unfinished
// runs that are furthest behind, as many of them as the engine takes.
class Training {
 public:
  Training(const TrainRunConfig& config, const std::vector<SeedRun>& runs, const TrainOptions& options)
      : config_(config), runs_(runs), options_(options) {
    if (options.lead) use_cpu(config_);
    const bool automatic = config_.engine == EngineKind::automatic;
    resolve(config_);
    if (const std::string why = automatic ? why_not_cuda(config_) : ""; !why.empty())
      say("on the cpu engine, although there is a device: " + why);
    check_folders();
    data_ = options.data;
    const auto planes = options.resume == Resume::no ? ColourPlanes::refused : ColourPlanes::taken;
    if (!data_) data_ = std::make_shared<DataSplits>(load_run_data(config_, options.data_dir, planes));
    if (!config_.batch) config_.batch = config_.train.batch = std::min(config_.train.batch, data_->train.size());
    say(fmt::format("data: {} ({} to train on)", data_->origin, data_->train.size()));
    const bool cuda = config_.engine == EngineKind::cuda;
    if (options.lead && cuda)
      say(fmt::format("ranks: {} share the work on their devices", options.lead->ranks()));
    else if (options.lead)
      say(fmt::format("ranks: {} share the work, with {} thread{} each", options.lead->ranks(), *config_.threads,
                      *config_.threads == 1 ? "" : "s"));
    if (facts_of(config_.train.model.density()).centred) say(scaling_of(config_, data_->train));
    if (data_->test.size() == 0 && config_.test.every > 0 && config_.test.every <= config_.iterations)
      say("there are no test data, so no test log-likelihood during training (test.every)");
    if (data_->validation.size() == 0 && *config_.validation.every > 0)
      throw KeyError(
          config_.validation.patience > 0 ? "early_stopping" : "validation.every",
          "there are no validation data; name them by validation.data, or hold some out by validation.split");
    check_parts(config_, *data_);
    for (const SeedRun& run : runs_) {
      TrainRunConfig own = config_;
      own.train.seed = run.seed;
      records_.emplace_back(own, *data_, run.folder, options);
      if (!options.tensorboard.empty())
        records_.back().log_to(runs_.size() > 1 ? options.tensorboard / run.folder.filename() : options.tensorboard);
    }
    failure_.resize(runs_.size());
    // on a device several runs train whole and side by side
    if (options.lead && (cuda ? options.say && runs_.size() == 1 : options.say || runs_.size() > 1))
      see_what_ranks_bring();
    choose_squad();
    if (squad_.empty()) squad_.push_back(0);  // all runs are finished: still check that an engine can be made
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
    try {
      if (!options_.tensorboard.empty()) check_can_make_folder(options_.tensorboard);
    } catch (const InputError& error) {
      throw InputError(fmt::format("--tensorboard: {}", error.what()));
    }
    std::set<fs::path> seen;
    for (const SeedRun& run : runs_) {
      if (!seen.insert(run.folder).second)
        throw InputError(fmt::format("{}: two runs cannot share a folder", run.folder.string()));
      if (options_.resume == Resume::no && fs::exists(run.folder / "config.toml"))
        throw InputError(
            fmt::format("{}: there is a run in this folder already; continue it with --resume, or choose "
                        "another folder with --out",
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

  std::int64_t count_of_all() const { return static_cast<std::int64_t>(records_.size()) * config_.iterations; }

  // An error in one run is kept for its outcome; the other runs continue.
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

  bool under_way(std::size_t run) const { return failure_[run].empty() && !records_[run].done(); }

  void choose_squad() {
    squad_.clear();
    std::uint32_t least = config_.iterations;
    goal_ = config_.iterations;
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i)) least = std::min(least, records_[i].iteration());
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i) && records_[i].iteration() == least) squad_.push_back(i);
    if (squad_.empty()) return;
    const int most = most_at_once(static_cast<int>(squad_.size()));
    if (static_cast<int>(squad_.size()) >= most) return squad_.resize(most);  // no other can join
    for (std::size_t i = 0; i < records_.size(); ++i)
      if (under_way(i) && records_[i].iteration() > least) goal_ = std::min(goal_, records_[i].iteration());
  }

  void make_squad() {
    std::vector<std::uint64_t> seeds;
    for (const std::size_t i : squad_) seeds.push_back(records_[i].seed());
    engine_.reset();  // frees its memory before the next one allocates
    engine_ = engine_of(config_, *data_, seeds, trains_alone() ? nullptr : options_.lead);
    if (const std::string device = engine_->device(); device_ != device) say("engine: " + device);
    device_ = engine_->device();
    for (std::size_t k = 0; k < squad_.size(); ++k) {
      TrainRecord& record = records_[squad_[k]];
      record.runs_on(device_);
      if (record.iteration() == 0) continue;
      try {
        engine_->restore(record.state(), static_cast<int>(k));
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

  void see_what_ranks_bring() {
    int left = 0;
    std::uint64_t seed = 0;  // of the first run that is not finished
    for (std::size_t run = runs_.size(); run-- > 0;)
      if (under_way(run)) ++left, seed = runs_[run].seed;
    if (left == 0) return;
    Lead& lead = *options_.lead;
    std::optional<RankPaces> paces;
    try {
      paces = time_ranks(lead, [&](Lead* by) { return engine_of(config_, *data_, {seed}, by); });
    } catch (const InputError&) {
      throw;
    } catch (const Error& error) {  // of this seed perhaps; the runs meet their own
      if (!lead.in_step()) throw;
      return say(fmt::format("ranks: iterations could not be timed with seed {}: {}", seed, error.what()));
    }
    if (!paces)
      return say(fmt::format(
          "ranks: {}, so iterations are not shared: each rank makes them all on its device; evaluations are "
          "shared (docs/cluster.md)",
          config_.train.model.channels.empty() ? "a whole refinement is one kernel here"
                                               : "gradients of convolutions are summed on one device"));
    paces_ = *paces;
    say(paces_.words(left, lead.ranks()));
  }

  // How many of the runs that are furthest behind, `behind` of them, train as one group.
  int most_at_once(int behind) const {
    if (options_.side_by_side > 0) return options_.side_by_side;
    if (!options_.lead || config_.engine == EngineKind::cuda)
      return side_by_side(config_.engine, static_cast<int>(records_.size()));
    return paces_.whole(behind, options_.lead->ranks()) ? options_.lead->ranks() : 1;
  }

  // Whether the last of several runs trains in this process, because all ranks together would be slower.
  bool trains_alone() const { return runs_.size() > 1 && squad_.size() == 1 && paces_.alone.all < paces_.shared.all; }

  // The state of a sound run of the squad; nothing for others.
  std::optional<TrainState> state_of(std::size_t run) const {
    const auto found = std::ranges::find(squad_, run);
    if (found == squad_.end() || !failure_[run].empty()) return {};
    return engine_->save(static_cast<int>(found - squad_.begin()));
  }

  void train_to_the_end() {
    const auto count = static_cast<std::int64_t>(records_.size());
    Progress progress(stderr, options_.progress, "train", count > 1 ? "iterations of all runs" : "iterations",
                      count_of_all());
    progress.start_at(iterations_made());
    while (!stopped() && !squad_.empty()) {
      train_squad(progress);
      if (!stopped()) change_squad();
    }
  }

  void change_squad() {
    for (const std::size_t i : squad_)
      guarded(i, [&] {
        if (records_[i].done())
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

  // Evaluates validation and test data if that is due, as `hone eval` does: with an engine of its own, so that training
  // is not affected. If it is stopped, it is due again when the run resumes; after the last iteration it is not
  // stopped.
  void test(std::size_t run) {
    TrainRecord& record = records_[run];
    if (record.validation_due()) {
      const EvaluationConfig wanted = validation_evaluation(config_, data_->validation);
      if (const auto found = evaluated(run, data_->validation, wanted, "validation"))
        record.validated(*found, *state_of(run));
    }
    if (!record.test_due()) return;
    if (const auto found = evaluated(run, data_->test, test_evaluation(config_, data_->test), "test"))
      record.test(*found);
  }

  // Nothing if it was stopped or failed.
  std::optional<EvaluationSummary> evaluated(std::size_t run, const DataSet& data, const EvaluationConfig& wanted,
                                             const std::string& name) {
    const TrainRecord& record = records_[run];
    const auto watch = [&](int) {
      if (options_.watch) options_.watch(iterations_made(), count_of_all(), "evaluating " + name + " data");
      if (stopped() && !record.finished()) throw Stopped();
    };
    try {
      const auto engine = engine_of(config_, *data_, {record.seed()}, options_.lead);
      engine->restore(*state_of(run));
      return summarize(engine->evaluate(data, wanted, watch));
    } catch (const Stopped&) {
    } catch (const Error& error) {  // a failure here does not end the training
      say(fmt::format("{}: {} data could not be evaluated at iteration {}: {}", runs_[run].folder.string(), name,
                      record.iteration(), error.what()));
    }
    return {};
  }

  void train_squad(Progress& progress) {
    const auto sound = [&](std::size_t i) { return failure_[i].empty(); };
    if (engine_->iteration() < goal_)
      for (const std::size_t i : squad_) guarded(i, [&] { test(i); });  // a stop may have left this undone
    const auto done = [&](std::size_t i) { return sound(i) && records_[i].done(); };
    while (std::ranges::any_of(squad_, sound) && std::ranges::none_of(squad_, done) && engine_->iteration() < goal_ &&
           !stopped()) {
      advance();
      progress.update(iterations_made(), note());
      if (options_.watch) options_.watch(iterations_made(), count_of_all(), note());
      const bool report = engine_->iteration() % config_.report_every == 0, save = checkpoint_due();
      for (const std::size_t i : squad_)
        guarded(i, [&] {
          if (report) records_[i].report();
          test(i);  // before the checkpoint, which implies that its row exists
          if (save) records_[i].save(*state_of(i));
        });
      if (save) since_checkpoint_ = {};
    }
  }

  // Trains up to the next report, checkpoint, test, goal or check of the clock.
  void advance() {
    const std::uint32_t now = engine_->iteration();
    std::uint32_t count = std::min(stretch_, goal_ - now);
    for (const std::uint32_t every :
         {config_.report_every, config_.checkpoint_every, config_.test.every, *config_.validation.every})
      if (every > 0) count = std::min(count, every - now % every);
    std::vector<TrainMetrics> metrics;
    for (const std::size_t i : squad_) metrics.push_back(records_[i].interval());
    const Stopwatch watch;
    try {
      engine_->train(count, metrics);
    } catch (const Error& error) {  // concerns all runs, such as a lost device
      for (const std::size_t i : squad_)
        if (failure_[i].empty()) fail(i, error.what());
      return;
    }
    const double took = watch.seconds();
    for (std::size_t k = 0; k < squad_.size(); ++k) {
      const std::size_t i = squad_[k];
      if (!failure_[i].empty()) continue;
      const int run = static_cast<int>(k);
      if (const std::string& why = engine_->failure(run); !why.empty()) {
        fail(i, why);
        continue;
      }
      records_[i].interval() = metrics[k];
      records_[i].advance(engine_->iteration(), engine_->step_size(run), took, static_cast<int>(squad_.size()));
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
    if (config_.checkpoint_every > 0 && engine_->iteration() % config_.checkpoint_every == 0) return true;
    return config_.checkpoint_minutes > 0 && since_checkpoint_.seconds() > 60 * config_.checkpoint_minutes;
  }

  TrainRunConfig config_;
  const std::vector<SeedRun>& runs_;
  const TrainOptions& options_;
  std::shared_ptr<const DataSplits> data_;
  std::deque<TrainRecord> records_;   // one per run
  std::vector<std::string> failure_;  // one per run; empty: sound
  std::vector<std::size_t> squad_;    // the runs that the engine holds
  std::uint32_t goal_ = 0;            // the iteration at which other runs join the squad, or the last
  std::unique_ptr<Engine> engine_;    // of the squad
  std::string device_;
  RankPaces paces_;  // if ranks share the work of several runs, or the user hears of it
  std::uint32_t stretch_ = 1;
  Stopwatch since_checkpoint_;
};

}  // namespace

std::vector<TrainOutcome> train(const TrainRunConfig& config, const std::vector<SeedRun>& runs,
                                const TrainOptions& options) {
  if (runs.empty()) throw InputError("there are no runs to train");
  return Training(config, runs, options).run();
}

TrainSummary train(const TrainRunConfig& config, const fs::path& folder, const TrainOptions& options) {
  const TrainOutcome outcome = train(config, {{config.train.seed, folder}}, options).front();
  if (!outcome.failure.empty()) throw Error(outcome.failure);
  return outcome.summary;
}

}  // namespace hone
