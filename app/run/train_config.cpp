#include "app/run/train_config.hpp"

#include <fmt/format.h>

#include <set>

#include "app/data/load.hpp"
#include "app/run/method_settings.hpp"
#include "hone/base/cpus.hpp"
#include "hone/engine/engines.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {
namespace {

const Choices<ModelKind> models = {{"vae", ModelKind::vae},
                                   {"mf", ModelKind::mf},
                                   {"logistic-mf", ModelKind::logistic_mf},
                                   {"gaussian-mf", ModelKind::gaussian_mf},
                                   {"poisson-mf", ModelKind::poisson_mf}};

Choices<std::optional<Density>> likelihoods() {
  Choices<std::optional<Density>> choices = {{"auto", std::nullopt}};
  Likelihoods::visit([&](auto each) { choices.emplace_back(each.facts.name, each.density); });
  return choices;
}

void add_model_settings(Settings& s, TrainRunConfig& config) {
  s.add("model", config.train.model.kind, models,
        "the latent-variable model: vae, or mf for matrix factorization; the others are mf with that likelihood");
  s.add("likelihood", config.likelihood, likelihoods(),
        "p(x | z); auto: the one in the model's name, otherwise bernoulli");
  s.add("categories", config.categories, Bounds::between(2, 1e5),
        "categorical likelihood: number of neighbouring values in a group, one of which is 1", "none");
  s.add("data", config.data, "a known data set (see 'hone data list'), or the path of a file or of a folder of images",
        "what to train on");
  s.add("binarization", config.binarization,
        {{"auto", Binarization::automatic},
         {"none", Binarization::none},
         {"threshold", Binarization::threshold},
         {"stochastic", Binarization::stochastic}},
        "how grey levels become bits; auto: as is usual for the data set");
  s.add("data_seed", config.data_seed, Bounds::between(0, 1e18),
        "seed of stochastic binarization, of synthetic data and of split");
  s.add("shape", config.shape, Bounds::between(1, 1e5),
        "rows and columns of a datum in a file, if it is an image; [rows, columns, 3] for colour", "as the file says");
  s.add("split", config.split, Bounds{.low = 0, .high = 1, .open_high = true},
        "share of a file's data that is held out as test data, chosen at random by data_seed");
  s.add("header", config.header, {{"auto", CsvHeader::automatic}, {"yes", CsvHeader::yes}, {"no", CsvHeader::no}},
        "whether .csv files begin with a line of names; auto: if it has no number, or is 0, 1, 2, …");
  s.add("missing", config.train.model.missing, {{"refuse", Missing::refused}, {"ignore", Missing::ignored}},
        "a missing value of a file (NaN, an empty cell) is an error, or left out of the likelihood");
  s.add("labels", config.labels,
        "the path of a file, the name of a column of the .csv file, or own: those of a known data set",
        "the label of each datum: colours the latent plot, not used in training");
  s.add("latent", config.latent, Bounds::between(1, 1e5), "dimension of z", "10 for vae, else 50");
  s.add("hidden", config.hidden, Bounds::between(1, 1e5), "hidden layers of the decoder",
        "[200, 200] for vae, else []");
  s.add("encoder_hidden", config.train.model.encoder_hidden, Bounds::between(1, 1e5),
        "hidden layers of q's two networks");
  s.add("family", config.family.kind, amortized_names(),
        "q(z | x), a Gaussian per datum: diagonal, or low-rank (cpu), whose rank factors carry correlations");
  s.add("rank", config.family.rank, Bounds::between(1, 1e4), "low-rank: number of factors, at most latent",
        "2 for low-rank");
  s.add(
      "channels", config.channels, Bounds::between(1, 1e4),
      "convolutions for images, before encoder_hidden and mirrored after hidden: windows of 4 x 4 pixels, each halves "
      "rows and columns; these are their channels (vae)",
      "none");
  s.add("activation", config.train.model.activation, activation_names(), "activation of all hidden layers");
  s.add(
      "init", config.train.model.initial, {{"scaled", InitialWeights::scaled}, {"paper", InitialWeights::paper}},
      "initial weights: scaled to widths and data, with smaller rates of q's first layer for data above 1; or those of "
      "the paper's authors");
}

void add_schedule_settings(Settings& s, TrainRunConfig& config) {
  s.add("schedule.alpha_from", config.objective.ramp.from, Bounds::between(0, 1e9),
        "vcd: up to this iteration alpha is 0, which is Hoffman's method; then it grows until schedule.alpha_until");
  s.add("schedule.alpha_until", config.objective.ramp.until, Bounds::between(0, 1e9),
        "vcd: the iteration at which alpha reaches its full value");
  s.add("schedule.warmup", config.train.warmup.until, Bounds::between(0, 1e9),
        "iterations over which all learning rates grow from 0 to their values");
}

void check_used(const ObjectiveConfig& objective) {
  const ObjectiveConfig usual = TrainRunConfig().objective, off;  // neither asks for anything
  const Ramp& ramp = objective.ramp;
  const auto refuse = [&](const auto& value, const auto& usual_value, const auto& off_value, const std::string& key) {
    if (objective.kind != ObjectiveKind::vcd && value != usual_value && value != off_value)
      throw KeyError(key, fmt::format("only objective vcd uses it; leave it out, or add --set {}={}", key, off_value));
  };
  refuse(objective.score_bound, usual.score_bound, off.score_bound, "score_bound");
  refuse(ramp.from, usual.ramp.from, off.ramp.from, "schedule.alpha_from");
  refuse(ramp.until, usual.ramp.until, off.ramp.until, "schedule.alpha_until");
  if (ramp.from > ramp.until)
    throw KeyError("schedule.alpha_from",
                   fmt::format("{} is above schedule.alpha_until, which is {}; set both", ramp.from, ramp.until));
  const bool bounded = objective.score_bound != usual.score_bound && objective.score_bound != off.score_bound;
  if (bounded && objective.alpha == 0)
    throw KeyError("score_bound", "with alpha 0 there is no score to bound; leave it out");
  if (bounded && objective.estimator == Estimator::large_t)
    throw KeyError("score_bound", "estimator large-t has no score at z0 to bound; leave it out");
}

void add_validation_settings(Settings& s, TrainRunConfig& config) {
  ValidationConfig& validation = config.validation;
  s.add("validation.data", validation.data, "the path of a file, or own: the validation part of the data set",
        "the validation data");
  s.add("validation.split", validation.split, Bounds{.low = 0, .high = 1, .open_high = true},
        "share of a file's training data that is held out as validation data, chosen at random by data_seed");
  s.add("validation.every", validation.every, Bounds::between(0, 1e9),
        "iterations between evaluations of validation data; best.safetensors keeps the best model; 0: none",
        "test.every with early_stopping, else 0");
  s.add("validation.points", validation.points, Bounds::between(1, 1e9),
        "number of validation data to evaluate: the first ones");
  s.add("validation.samples", validation.samples, Bounds::between(2, 1e9),
        "importance samples for each of the three proposals");
  s.add("early_stopping", validation.patience, Bounds::between(0, 1e6),
        "training stops after this many evaluations of validation data without a new best; 0: never");
}

void check_used(const ValidationConfig& config) {
  const ValidationConfig usual;
  if (*config.every > 0) return;
  if (config.patience > 0) throw KeyError("early_stopping", "needs evaluations, and validation.every is 0");
  const bool points = config.points != usual.points;
  if (points || config.samples != usual.samples)
    throw KeyError(points ? "validation.points" : "validation.samples", "does nothing where validation.every is 0");
}

void add_running_settings(Settings& s, TrainRunConfig& config) {
  s.add("report_every", config.report_every, Bounds::between(1, 1e9), "iterations that a row of metrics.csv averages");
  s.add("checkpoint.every", config.checkpoint_every, Bounds::between(0, 1e9),
        "iterations between checkpoints; 0: no limit in iterations, checkpoint.minutes alone decides");
  s.add("checkpoint.minutes", config.checkpoint_minutes, Bounds::between(0, 1e6),
        "minutes between checkpoints; 0: no limit in minutes, checkpoint.every alone decides");
  s.add("test.every", config.test.every, Bounds::between(0, 1e9),
        "iterations between evaluations of test data, for a learning curve; 0: none");
  s.add("test.points", config.test.points, Bounds::between(1, 1e9), "number of test data to evaluate: the first ones");
  s.add("test.samples", config.test.samples, Bounds::between(2, 1e9),
        "importance samples for each of the three proposals");
  s.add("test.data", config.test.data, "the path of a file, or own: the test part of the data set",
        "the test data of 'hone eval' and of evaluations during training");
  s.add("engine", config.engine,
        {{"auto", EngineKind::automatic}, {"cpu", EngineKind::cpu}, {"cuda", EngineKind::cuda}},
        "what executes training; auto: cuda if there is a device (see 'hone info') and the configuration allows it");
  s.add("threads", config.threads, Bounds::between(1, 1024), "threads; results do not depend on it", "all cores");
}

void check_used(const TestConfig& config) {
  const TestConfig usual;
  const bool points = config.points != usual.points;
  if (config.every == 0 && (points || config.samples != usual.samples))
    throw KeyError(points ? "test.points" : "test.samples", "does nothing where test.every is 0");
}

// The path of a file or a folder that exists, FILE.npz:KEY too, made absolute and without . and .. (unless a link makes
// that another file); none if there is no such thing.
std::optional<std::string> absolute_data_path(const std::string& name) {
  namespace fs = std::filesystem;
  const std::size_t npz = name.find(".npz:");
  const fs::path file = npz == std::string::npos ? name : name.substr(0, npz + 4);
  std::error_code error;
  if (!fs::is_regular_file(file, error) && !fs::is_directory(file, error)) return {};
  const fs::path whole = fs::absolute(file), normal = whole.lexically_normal();
  return (fs::equivalent(whole, normal, error) ? normal : whole).string() +
         (npz == std::string::npos ? "" : name.substr(npz + 4));
}

// Makes the paths of files and folders that are there absolute. `own` and known data sets are no paths; a name without
// slash and extension may be that of a folder, or of a column of labels.
void make_absolute(TrainRunConfig& config, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (std::string* name : {&config.data, &config.test.data, &config.validation.data, &config.labels}) {
    const fs::path path = *name;
    if (*name == "own" || is_known_data_set(*name)) continue;
    const bool plain =
        path.is_relative() && !path.has_parent_path() && !path.has_extension() && !name->ends_with("-ubyte");
    const bool is_folder = fs::is_directory(folder / path, ignored);
    if (name == &config.labels ? plain || is_folder : plain && !is_folder) continue;
    if (const auto there = absolute_data_path((folder / path).string())) *name = *there;
  }
}

void resolve_likelihood(TrainRunConfig& config) {
  ModelConfig& model = config.train.model;
  if (model.kind == ModelKind::vae || model.kind == ModelKind::mf)
    model.likelihood = config.likelihood.value_or(Density::bernoulli);
  else
    model.likelihood = model.density();
  if (config.likelihood.value_or(model.likelihood) != model.likelihood)
    throw KeyError("likelihood", fmt::format("the model's name says {}; for another likelihood the model is mf",
                                             facts_of(model.likelihood).name));
  config.likelihood = model.likelihood;
  model.categories = config.categories.value_or(0);
}

}  // namespace

TrainRunConfig paper_run_config() {
  TrainRunConfig config;
  config.train = TrainConfig::paper();
  config.batch = config.train.batch;
  config.objective = {};
  return config;
}

void relative_to(const std::filesystem::path& folder, TrainRunConfig& config) { make_absolute(config, folder); }

Settings train_settings(TrainRunConfig& config) {
  TrainConfig& train = config.train;
  Settings s;
  add_model_settings(s, config);
  add_objective_settings(s, config.objective, objective_names());
  s.add("score_bound", config.objective.score_bound, Bounds::at_least(0),
        "vcd: f(z_t) - C, the weight of the score at z0, is cut at plus and minus this many nats; 0: never");
  s.add("baseline", train.baseline,
        {{"none", LatentBaseline::none}, {"global", LatentBaseline::global}, {"local", LatentBaseline::local}},
        "control variate of the score-function terms: one for all data, or one per datum");
  s.add("local_from", train.shared_until, Bounds::between(0, 1e9),
        "local baseline: up to this iteration all data share one control variate");
  add_refinement_settings(s, {.kernel = config.kernel,
                              .steps = train.refine.steps,
                              .adapt = train.refine.adapt,
                              .step_size = config.step_size,
                              .acceptance = config.acceptance,
                              .acceptance_default = "hmc 0.9, mala 0.54, random-walk 0.4"});
  s.add("step_scale", train.step_scale, {{"same", StepScale::same}, {"q", StepScale::q}},
        "steps in the dimensions of z: the same in all, or in proportion to q's standard deviations (cpu)");
  s.add("batch", config.batch, Bounds::between(1, 1e6), "data per minibatch",
        fmt::format("{}, or all data if there are fewer", train.batch));
  s.add("iterations", config.iterations, Bounds::between(1, 2e9), "iterations of the fit");
  add_optimizer_settings(s, {.kind = train.optimizer,
                             .rate_mean = train.rate_mean,
                             .rate_scale = train.rate_scale,
                             .rate_decay = train.rate_decay,
                             .decay_every = train.decay_every});
  s.add("rate_model", train.rate_model, Bounds::at_least(0), "learning rate of the model's parameters");
  s.add("precision", train.precision,
        {{"auto", Precision::automatic},
         {"float32", Precision::float32},
         {"float64", Precision::float64},
         {"bf16-trajectory", Precision::bf16_trajectory},
         {"tf32", Precision::tf32}},
        "numbers of the networks; auto: float32 on the cpu, tf32 on cuda; bf16-trajectory (cpu): bf16 gradients inside "
        "hmc, accepted exactly (needs AVX512-BF16)");
  add_schedule_settings(s, config);
  add_seed_setting(s, train.seed);
  add_validation_settings(s, config);
  add_running_settings(s, config);
  return s;
}

void resolve(TrainRunConfig& config) {
  TrainConfig& train = config.train;
  const bool vae = train.model.kind == ModelKind::vae;
  resolve_likelihood(config);
  make_absolute(config, "");
  if (!config.latent) config.latent = vae ? 10 : 50;
  if (!config.hidden) config.hidden = vae ? std::vector{200, 200} : std::vector<int>{};
  if (!config.step_size) config.step_size = 0.5 / *config.latent;
  if (!config.acceptance)
    config.acceptance = config.kernel.kind == KernelKind::hmc ? 0.9 : make_kernel(config.kernel)->default_acceptance();
  if (!config.threads) config.threads = default_threads();
  if (config.batch) train.batch = *config.batch;
  train.model.latent = *config.latent;
  train.model.hidden = *config.hidden;
  train.model.channels = config.channels.value_or(std::vector<int>());
  train.refine.step_size = *config.step_size;
  train.refine.acceptance = *config.acceptance;
  check_used(config.objective, config.kernel);
  check_used(config.objective);
  if (!config.validation.every) config.validation.every = config.validation.patience > 0 ? config.test.every : 0;
  check_used(config.test);
  check_used(config.validation);
  if (config.family.kind == AmortizedKind::low_rank && !config.family.rank)
    config.family.rank = std::min(2, *config.latent);
  train.family = make_family(config.family);
  train.objective = make_objective(config.objective);
  train.baseline_decay = config.objective.baseline_decay;
  train.kernel = make_kernel(config.kernel);
  config.engine = chosen_engine(config.engine, train);
  check(train, config.engine);
}

std::vector<std::string> idle_keys(const TrainRunConfig& config) {
  const TrainConfig plain;
  const TrainConfig& train = config.train;
  const auto objective = make_objective(config.objective);
  const bool refines = objective->refines(), baseline = objective->terms()->uses_baseline();
  std::vector<std::string> keys;
  if (!refines && train.refine.steps != plain.refine.steps) keys.push_back("steps");
  if (!refines && train.refine.adapt != plain.refine.adapt) keys.push_back("adapt");  // `hone eval` uses the rest
  if (!refines && train.step_scale != plain.step_scale) keys.push_back("step_scale");
  if (!baseline && train.baseline != plain.baseline) keys.push_back("baseline");
  if (!baseline && train.shared_until != plain.shared_until) keys.push_back("local_from");
  return keys;
}

std::string schedule_note(const TrainRunConfig& config) {
  const Ramp& ramp = config.objective.ramp;
  if (config.objective.kind != ObjectiveKind::vcd || config.iterations >= ramp.until) return {};
  if (ramp.at(config.iterations) == 0)
    return fmt::format(
        "the VCD has no part in this run, which ends at iteration {}: it begins at {} (schedule.alpha_from)",
        config.iterations, ramp.from);
  return fmt::format(
      "alpha reaches only {:.3f} of its value: the run ends at iteration {}, and schedule.alpha_until is {}",
      ramp.at(config.iterations), config.iterations, ramp.until);
}

std::string why_not_cuda(const TrainRunConfig& config) {
  if (!cuda_support().missing.empty()) return {};
  try {
    check(config.train, EngineKind::cuda);
  } catch (const KeyError& error) {
    return fmt::format("{}: {}", error.key(), error.message());
  }
  return {};
}

EvaluationConfig test_evaluation(const TrainRunConfig& config, const DataSet& test) {
  return {.samples = config.test.samples, .points = std::min(config.test.points, test.size())};
}

EvaluationConfig validation_evaluation(const TrainRunConfig& config, const DataSet& validation) {
  return {.samples = config.validation.samples, .points = std::min(config.validation.points, validation.size())};
}

DataRequest data_request(const TrainRunConfig& config, const std::filesystem::path& data_dir) {
  return {.name = config.data,
          .binarization = config.binarization,
          .seed = config.data_seed,
          .data_dir = data_dir,
          .shape = config.shape.value_or(std::vector<int>()),
          .split = config.split,
          .test = config.test.data == "own" ? "" : config.test.data,
          .validation_split = config.validation.split,
          .validation = config.validation.data == "own" ? "" : config.validation.data,
          .missing = config.train.model.missing,
          .labels = config.labels == "own" ? "" : config.labels,
          .header = config.header};
}

std::map<std::string, std::string> identity_of_earlier_versions(const std::map<std::string, std::string>& stored) {
  TrainRunConfig config = paper_run_config();
  for (const auto& [name, kind] : models)
    if (stored.contains("model") && stored.at("model") == '"' + name + '"') config.train.model.kind = kind;
  config.likelihood = config.train.model.density();
  const auto paper = identity_of(config);
  std::map<std::string, std::string> identity;
  for (const char* key : {"init", "score_bound", "schedule.alpha_from", "schedule.alpha_until", "schedule.warmup",
                          "shape", "split", "header", "missing", "validation.split", "likelihood", "categories",
                          "channels", "step_scale", "family", "rank"})
    identity.emplace(key, paper.at(key));
  return identity;
}

std::map<std::string, std::string> identity_of(const TrainRunConfig& given) {
  static const std::set<std::string> free = {"iterations",
                                             "report_every",
                                             "checkpoint.every",
                                             "checkpoint.minutes",
                                             "test.every",
                                             "test.points",
                                             "test.samples",
                                             "test.data",
                                             "validation.every",
                                             "validation.points",
                                             "validation.samples",
                                             "validation.data",
                                             "early_stopping",
                                             "labels",
                                             "engine",
                                             "threads"};
  TrainRunConfig config = given;
  std::map<std::string, std::string> identity;
  const Settings settings = train_settings(config);
  for (const Settings::Entry& entry : settings.entries())
    if (!free.contains(entry.key)) identity[entry.key] = entry.print();
  return identity;
}

}  // namespace hone
