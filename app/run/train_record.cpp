#include "app/run/train_record.hpp"

#include <fmt/format.h>

#include <cmath>

#include "app/data/fingerprint.hpp"
#include "app/run/json.hpp"
#include "app/run/latent_plot.hpp"
#include "app/run/test_curve.hpp"
#include "app/run/train_pictures.hpp"
#include "hone/base/error.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model.hpp"

namespace hone {
namespace fs = std::filesystem;

std::map<std::string, std::string> identity_of(const TrainRunConfig& config, const DataSet& train) {
  std::map<std::string, std::string> identity = identity_of(config);
  identity["data.sha256"] = fingerprint(train);
  return identity;
}

DataFacts facts_of(const TrainRunConfig& config, const DataSplits& data) {
  const bool centred = facts_of(config.train.model.density()).centred;
  return {.shape = data.train.shape(),
          .mean = centred ? mean_of(data.train) : std::vector<double>(),
          .threshold = data.threshold};
}

TrainRunConfig read_train_config(const fs::path& path, int threads, std::optional<EngineKind> engine) {
  TrainRunConfig config = paper_run_config();  // a file of an earlier version lacks keys; it trained by the paper's
  Settings settings = train_settings(config);
  settings.read_file(path);
  config.threads = threads;
  if (engine) config.engine = *engine;
  try {
    resolve(config);
  } catch (const KeyError& error) {
    throw settings.located(error);
  }
  return config;
}

TrainRecord::TrainRecord(const TrainRunConfig& config, const DataSplits& data, fs::path folder,
                         const TrainOptions& options)
    : config_(config), data_(data), path_(std::move(folder)), options_(options) {
  checkpoint_.identity = identity_of(config_, data.train);
  checkpoint_.state.step_size = config_.train.refine.step_size;
  checkpoint_.data = facts_of(config_, data);
  const bool resume = options.resume == Resume::yes;
  RunFolder::check(path_, resume ? Reuse::run : Reuse::nothing);
  if (!resume) return;
  if (fs::exists(path_)) lock_.emplace(path_);
  restore();
}

void TrainRecord::say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

void TrainRecord::warn(const std::string& text) const { options_.warn ? options_.warn(text) : say(text); }

void TrainRecord::restore() {
  const auto found = find_checkpoint(path_, [this](const std::string& text) { warn(text); });
  if (!found) return start_anew();
  check_identity(found->path, found->checkpoint.identity, checkpoint_.identity);
  const std::uint32_t made = found->checkpoint.state.iteration;
  if (made > config_.iterations)
    throw KeyError("iterations", fmt::format("{} has already made {} iterations, more than the {} requested",
                                             found->path.string(), made, config_.iterations));
  checkpoint_ = found->checkpoint;
  if (!checkpoint_.data) checkpoint_.data = facts_of(config_, data_);
  started_at_ = saved_at_ = made;
  look_at_validation();
  damaged_ = found->path.filename() == previous_checkpoint_name;
  good_ = fmt::format("{}, iteration {}", found->path.string(), saved_at_);
  say(fmt::format("continuing from {}", good_));
}

// A run that ended before its first checkpoint may start again, but not with other settings.
void TrainRecord::start_anew() const {
  const fs::path path = path_ / "config.toml";
  if (fs::exists(path))
    check_identity(path, identity_of(read_train_config(path, *config_.threads)), identity_of(config_));
  say(fmt::format("{}: no checkpoint; starting from the beginning", path_.string()));
}

void TrainRecord::open() {
  folder_.emplace(path_, options_.resume == Resume::yes ? Reuse::run : Reuse::nothing);
  if (!lock_) lock_.emplace(path_);
  folder_->remove_unfinished();
  if (damaged_) set_aside_damaged(path_);
  folder_->write("config.toml", train_settings(config_).to_toml());
  metrics_.emplace(path_ / "metrics.csv", counters().reported);
  if (counters().reported > 0) health_.read(path_ / "metrics.csv");
  clock_.emplace(path_ / "clock.csv", started_at_);
  side_by_side_ = clock_->runs();
  cut_test_rows(path_, started_at_);
  if (!tensorboard_.empty()) events_.emplace(tensorboard_, started_at_);
}

void TrainRecord::look_at_validation() {
  if (data_.validation.size() == 0 || *config_.validation.every == 0) return;
  const EvaluationConfig wanted = validation_evaluation(config_, data_.validation);
  best_ = best_so_far(path_, iteration(), *wanted.points, wanted.samples);
}

bool TrainRecord::stopped_early() const {
  return config_.validation.patience > 0 && best_ && best_->since >= config_.validation.patience;
}

void TrainRecord::advance(std::uint32_t iteration, double step_size, double seconds, int side_by_side) {
  checkpoint_.state.iteration = iteration;
  checkpoint_.state.step_size = step_size;
  trained_seconds_ += seconds;
  side_by_side_ = side_by_side;
}

void TrainRecord::report() {
  RunCounters& c = counters();
  metrics_->row(iteration(), seconds(), c.interval, checkpoint_.state.step_size);
  if (events_) {
    events_->scalar("train/elbo", iteration(), c.interval.elbo.mean());
    if (c.interval.vcd.count() > 0) events_->scalar("train/vcd", iteration(), c.interval.vcd.mean());
    if (c.interval.acceptance.count() > 0)
      events_->scalar("train/acceptance", iteration(), c.interval.acceptance.mean());
    events_->scalar("train/step_size", iteration(), checkpoint_.state.step_size);
  }
  watch(health_);
  if (health_.worth_a_word())
    warn(fmt::format("{}: iteration {}: {}. {}", path_.string(), iteration(), health_.trouble()->text(),
                     advice(config_, too_wide(config_, data_.train))));
  c.rejected_nonfinite += c.interval.rejected_nonfinite;
  c.dropped_draws += c.interval.dropped_draws;
  c.last = c.interval;
  c.interval = {};
  c.reported = iteration();
}

bool TrainRecord::test_due() const {
  if (config_.test.every == 0 || iteration() == 0 || iteration() % config_.test.every != 0) return false;
  if (data_.test.size() == 0) return false;
  const EvaluationConfig wanted = test_evaluation(config_, data_.test);
  return !has_test_row(path_, iteration(), *wanted.points, wanted.samples);
}

void TrainRecord::test(const EvaluationSummary& summary) {
  add_test_row(path_, iteration(), test_evaluation(config_, data_.test), summary);
  if (events_) events_->scalar("test/log_likelihood", iteration(), summary.mixture.mean);
}

bool TrainRecord::validation_due() const {
  const std::uint32_t every = *config_.validation.every;
  if (every == 0 || iteration() == 0 || iteration() % every != 0 || data_.validation.size() == 0) return false;
  const EvaluationConfig wanted = validation_evaluation(config_, data_.validation);
  return !has_test_row(path_, iteration(), *wanted.points, wanted.samples, CurveOf::validation);
}

void TrainRecord::validated(const EvaluationSummary& summary, TrainState state) {
  if (!best_ || summary.mixture.mean > best_->value) {  // before the row, which implies that it exists
    Checkpoint best = checkpoint_;
    best.state = std::move(state);
    write_file(path_ / best_checkpoint_name, encode(best));
  }
  add_test_row(path_, iteration(), validation_evaluation(config_, data_.validation), summary, CurveOf::validation);
  if (events_) events_->scalar("validation/log_likelihood", iteration(), summary.mixture.mean);
  look_at_validation();
  if (stopped_early())
    say(
        fmt::format("{}: stopped early at iteration {}: the best validation log-likelihood, {:.3f}, was {} evaluations "
                    "ago, at iteration {} ({})",
                    path_.string(), iteration(), best_->value, best_->since, best_->iteration, best_checkpoint_name));
}

void TrainRecord::save(TrainState state) {
  checkpoint_.state = std::move(state);
  metrics_->sync();  // a checkpoint implies the rows before it
  clock_->row(iteration(), seconds(), side_by_side_);
  write_checkpoint(path_, checkpoint_);
  checkpoint_.state.arrays.clear();
  saved_at_ = iteration();
  good_ = fmt::format("{}, iteration {}", (path_ / checkpoint_name).string(), saved_at_);
}

void TrainRecord::close(std::optional<TrainState> state) {
  if (closed_) return;
  if (interval().elbo.count() > 0)  // a row for the unfinished interval, which continues when the run is resumed
    metrics_->row(iteration(), seconds(), interval(), checkpoint_.state.step_size);
  if (state && iteration() != saved_at_) save(*state);
  if (iteration() > started_at_ || !fs::exists(path_ / "summary.json") ||
      !parse_json(read_file(path_ / "summary.json")).is_object())  // otherwise it is up to date
    folder_->write("summary.json", with_evaluation(summary()));
  if (state && (iteration() > started_at_ || !fs::exists(path_ / "figures" / "images.json"))) {
    write_pictures(*folder_, config_, data_, *state);
    write_latent_plot(*folder_, config_, data_, *state);
  }
  closed_ = true;
}

// The current interval as the next row.
void TrainRecord::watch(TrainHealth& health) const {
  const TrainMetrics& now = interval();
  if (now.elbo.count() > 0)
    health.add(iteration(), now.elbo.mean(),
               now.vcd.count() > 0 ? now.vcd.estimate() : Estimate{std::nan(""), std::nan("")});
}

TrainSummary TrainRecord::summary() const {
  TrainRunConfig copy = config_;
  const Settings settings = train_settings(copy);
  const RunCounters& c = checkpoint_.counters;
  const TrainMetrics& shown = c.interval.elbo.count() > 0 ? c.interval : c.last;
  const Estimate unknown{std::nan(""), std::nan("")};
  TrainSummary s;
  s.model = settings.text("model");
  s.likelihood = settings.text("likelihood");
  s.family = in_words(config_.family);
  s.data = data_.name;
  s.binarization = data_.binarization;
  s.objective = settings.text("objective");
  s.kernel = settings.text("kernel");
  s.precision = settings.text("precision");
  s.engine = settings.text("engine");
  s.alpha = config_.objective.alpha;
  s.latent = config_.train.model.latent;
  s.steps = config_.train.refine.steps;
  s.leapfrog = config_.kernel.leapfrog;
  s.batch = config_.train.batch;
  s.threads = *config_.threads;
  s.seed = config_.train.seed;
  s.iterations = iteration();
  s.finished = done();
  s.stopped_early = stopped_early() && !finished();
  s.best = best_;
  s.seconds = seconds();
  s.us_per_iteration = s.iterations > 0 ? 1e6 * s.seconds / s.iterations : std::nan("");
  s.runs_side_by_side = side_by_side_;
  s.elbo = shown.elbo.count() > 0 ? shown.elbo.estimate() : unknown;
  s.vcd = shown.vcd.count() > 0 ? shown.vcd.estimate() : unknown;
  s.acceptance = shown.acceptance.count() > 0 ? shown.acceptance.mean() : std::nan("");
  s.step_size = checkpoint_.state.step_size;
  s.rejected_nonfinite = c.rejected_nonfinite + c.interval.rejected_nonfinite;
  s.dropped_draws = c.dropped_draws + c.interval.dropped_draws;
  s.training_data = data_.train.size();
  s.test_data = data_.test.size();
  s.device = device_;
  TrainHealth health = health_;
  watch(health);
  s.trouble = health.trouble();
  if (s.trouble) s.advice = advice(config_, too_wide(config_, data_.train));
  s.note = schedule_note(config_);
  return s;
}

// summary.json, with what `hone eval` found for the models that are still there: the newest, and the best.
std::string TrainRecord::with_evaluation(const TrainSummary& summary) const {
  const fs::path path = path_ / "summary.json";
  const std::string text = summary.to_json();
  if (!fs::exists(path)) return text;
  const Json old = parse_json(read_file(path));
  if (!old.is_object()) return text;
  Json json = parse_json(text);
  for (const auto& [key, value] : old.items()) {
    if (!key.ends_with("_log_likelihood") || !value.is_object()) continue;
    const bool of_best = key.starts_with("best_");
    if (of_best && !summary.best) continue;
    const std::uint32_t model = of_best ? summary.best->iteration : summary.iterations;
    if (value.value("iteration", Json()) == model) json[key] = value;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone
