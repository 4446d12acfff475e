#include "app/run/posterior_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <future>

#include "app/run/draws.hpp"
#include "app/run/json.hpp"
#include "app/run/kept_draws.hpp"
#include "app/run/method_settings.hpp"
#include "hone/base/error.hpp"
#include "hone/target/stan.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

const Choices<QKind> families = {{"auto", QKind::automatic},
                                 {"gaussian", QKind::gaussian},
                                 {"gaussian-full", QKind::gaussian_full},
                                 {"gaussian-curvature", QKind::gaussian_curvature},
                                 {"gaussian-low-rank", QKind::gaussian_low_rank},
                                 {"mixture", QKind::mixture}};

const Choices<ChainCoordinates> chain_coordinates = {{"adapted", ChainCoordinates::adapted},
                                                     {"affine", ChainCoordinates::affine}};
const Choices<Effort> efforts = {{"quick", Effort::quick}, {"default", Effort::usual}, {"thorough", Effort::thorough}};

Json rows_of(std::span<const double> packed_rows, int d) {
  Json rows = Json::array();
  for (int i = 0; i < d; ++i)
    rows.push_back(std::vector<double>(packed_rows.begin() + static_cast<std::ptrdiff_t>(packed(i, 0)),
                                       packed_rows.begin() + static_cast<std::ptrdiff_t>(packed(i + 1, 0))));
  return rows;
}

Json json_of(const std::vector<double>& mean, const std::vector<double>& sd) { return {{"mean", mean}, {"sd", sd}}; }

// One Gaussian over z: m + L (μ + S e)
Json component_json(const Whitening& whitening, const Normal* normal) {
  const Whitening own = normal ? whitening.then_lower(normal->mean, normal->scale) : whitening;
  std::vector<double> sd(own.dimension());
  for (int i = 0; i < own.dimension(); ++i) sd[i] = std::sqrt(own.variance(i));
  Json json = json_of({own.mean().begin(), own.mean().end()}, sd);
  if (own.is_dense()) json["cholesky"] = rows_of(own.packed_lower(), own.dimension());
  if (!own.is_dense() && !own.is_diagonal()) {  // L = diag(a) (I + U diag(r − 1) Uᵀ) diag(b)
    Json u = Json::array();
    for (int k = 0; k < own.u().cols(); ++k) {
      const auto column = own.u().column(k);
      u.push_back(std::vector<double>(column.begin(), column.end()));
    }
    json["factor"] = {{"a", std::vector<double>(own.a().begin(), own.a().end())},
                      {"u", u},
                      {"r", std::vector<double>(own.r().begin(), own.r().end())},
                      {"b", std::vector<double>(own.b().begin(), own.b().end())}};
  }
  return json;
}

std::string q_json(const FittedQ& q, const Posterior& posterior) {
  Json json = {{"family", family_name(q.kind)}, {"coordinates", posterior.coordinate_names()}};
  Json& components = json["components"] = Json::array();
  if (q.kind == QKind::mixture) {
    std::vector<double> weight(q.family->components());
    q.family->log_weights(weight);
    for (int k = 0; k < q.family->components(); ++k) {
      const Normal normal = q.family->component(k).value();
      components.push_back(component_json(q.whitening, &normal));
      components.back()["weight"] = std::exp(weight[k]);
    }
  } else {
    components.push_back(component_json(q.whitening, nullptr));
    components.back()["weight"] = 1;
  }
  return json.dump(2) + "\n";
}

// config.toml, with which a fit can be run again from any folder.
std::string config_toml(PosteriorRunConfig config) {
  for (std::string* path : {&config.model, &config.data})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  Settings settings = posterior_run_settings(config);
  add_model_keys(settings, config);
  return settings.to_toml();
}

// The refined draws over the unconstrained coordinates z (D, n).
Matrix<double> unconstrained(const CheckedFit& fit) {
  const Matrix<double>& e = fit.refined.states.z;
  Matrix<double> z(e.rows(), e.cols());
  for (int i = 0; i < z.cols(); ++i) fit.fit.q.whitening.to_z(e.column(i), z.column(i));
  return z;
}

// Some columns of a table.
DrawTable table_of(const std::vector<std::string>& names, const Matrix<double>& values, const CheckedFit& fit,
                   const KeptDraws& kept) {
  DrawTable table{.names = names,
                  .values = Matrix<double>(values.rows(), static_cast<int>(kept.cols.size())),
                  .log_p = {},
                  .log_q = {}};
  for (std::size_t i = 0; i < kept.cols.size(); ++i) {
    copy(values.column(kept.cols[i]), table.values.column(static_cast<int>(i)));
    table.log_p.push_back(fit.log_p[static_cast<std::size_t>(kept.cols[i])]);
    table.log_q.push_back(fit.log_q[static_cast<std::size_t>(kept.cols[i])]);
  }
  return table;
}

FitGroups groups_of(const Posterior& posterior, const PosteriorRunConfig& config, const std::vector<DataArray>& data) {
  std::vector<std::string> names;
  for (const DataArray& array : data) names.push_back(array.name);
  return fit_groups(posterior.names(), names, config.model);
}

}  // namespace

std::string family_name(QKind kind) { return name_of(families, kind); }

Settings posterior_run_settings(PosteriorRunConfig& config) {
  Settings s;
  CheckedFitConfig& check = config.check;
  PosteriorFitConfig& fit = check.fit;
  s.add("family", fit.family, families, "the approximation q");
  s.add("objective", config.objective, objective_names({ObjectiveKind::vcd, ObjectiveKind::kl}),
        "the divergence that q minimises; vcd begins with kl");
  s.add("steps", fit.steps, Bounds::between(1, 4096), "MCMC steps after which the chains are first checked");
  s.add("draws_per_iteration", fit.draws_per_iteration, Bounds::between(2, 1e5),
        "draws of q per iteration of the fit by kl");
  s.add("draws", check.draws, Bounds::between(100, 1e7), "write at most this many refined draws");
  s.add("effort", config.effort, efforts, "wanted errors of means: 0.1, 0.05 or 0.02 sd");
  s.add("error", config.error, Bounds::between(0.002, 1), "the same as a number: twice the standard error, in sds",
        "by effort");
  s.add("target_accept", fit.acceptance, Bounds::between(0.5, 0.999),
        "acceptance that step sizes aim at; higher where trajectories diverge");
  s.add("chain_coordinates", check.coordinates, chain_coordinates,
        "coordinates in which the chains move: adapted to funnels and curves where that helps, or q's own");
  s.add("starts", fit.starts, Bounds::between(1, 1000), "searches for modes from random starts");
  s.add("budget", config.budget, "gradients, or seconds as 30s",
        "limit on the work, not counting the first searches and a short first round of chains", "N|Ns");
  s.add("tolerance_mean", check.tolerances.mean, Bounds::positive(), "shift of a mean, in sds, that use-q allows");
  s.add("tolerance_sd", check.tolerances.sd, Bounds::positive(), "relative error of an sd that use-q allows");
  s.add("tolerance_vcd", check.tolerances.vcd, Bounds::positive(), "VCD per dimension that use-q allows");
  add_seed_setting(s, fit.seed);
  s.add("threads", fit.threads, Bounds::between(1, 1024), "threads; results do not depend on it");
  return s;
}

void add_model_keys(Settings& settings, PosteriorRunConfig& config) {
  settings.add("model", config.model, "a path", "the Stan program or library");
  settings.add("data", config.data, "a path", "its data");
}

void resolve(PosteriorRunConfig& config) {
  const std::string& text = config.budget;
  double value = 0;
  const bool seconds = !text.empty() && text.back() == 's';
  const char* const end = text.data() + text.size() - (seconds ? 1 : 0);
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || read != end || !(value > 0) || !(value < 1e15))
    throw InputError(fmt::format("--budget '{}': expected a number of gradients, or of seconds as in 30s", text));
  config.check.fit.budget = seconds ? Budget{0, value} : Budget{static_cast<std::int64_t>(std::ceil(value)), 0};
  const double by_effort = config.effort == Effort::quick ? 0.1 : config.effort == Effort::thorough ? 0.02 : 0.05;
  config.check.error = config.error.value_or(by_effort);
  const auto objective =
      make_objective({.kind = config.objective, .entropy = Entropy::sampled, .baseline = BaselineKind::leave_one_out});
  config.check.fit.objective = objective->refines() ? objective : nullptr;  // a fit begins by the KL in any case
}

std::unique_ptr<Posterior> open_posterior(const PosteriorRunConfig& config, StanOptions options) {
  const std::filesystem::path model = config.model;
  std::filesystem::path library = model;
  if (!config.data.empty() && !std::filesystem::exists(config.data))
    throw InputError(fmt::format("{}: no such data file", config.data));
  if (model.extension() == ".stan" && !std::filesystem::exists(model))
    throw InputError(fmt::format("{}: there is no such file; expected a Stan program", config.model));
  options.data = config.data;
  options.no_data = config.data.empty();
  if (model.extension() == ".stan")
    library = compile_stan(model, options);
  else if (model.extension() != ".so")
    throw InputError(fmt::format("{}: expected a Stan program (.stan) or a library with BridgeStan's interface (.so)",
                                 config.model));
  return load_bridgestan(library, config.data, model);
}

std::vector<DataArray> data_arrays(const PosteriorRunConfig& config) {
  return config.data.empty() ? std::vector<DataArray>() : read_data_arrays(config.data);
}

PosteriorRunFiles posterior_run_files(const Posterior& posterior, const CheckedFit& fit, PosteriorRunConfig& config,
                                      std::vector<DataArray> data) {
  const KeptDraws kept = kept_draws(fit.refined, config.check.draws);
  FitGroups groups = groups_of(posterior, config, data);
  DrawTable draws = table_of(posterior.names(), fit.natural_refined, fit, kept);
  for (const int column : kept.cols) draws.moves.push_back(fit.refined.states.moves[static_cast<std::size_t>(column)]);
  draws.short_chain = kept.short_chain;
  std::string summary = fit_summary_json(fit, config, groups);
  return {.config = config_toml(config),
          .q = q_json(fit.fit.q, posterior),
          .summary = std::move(summary),
          .draws_q = {posterior.names(), fit.natural_q, fit.log_p0, fit.log_q0},
          .draws = std::move(draws),
          .draws_unconstrained = table_of(posterior.coordinate_names(), unconstrained(fit), fit, kept),
          .verdict = name_of(fit.judgement.verdict),
          .stan_version = stan_version(posterior),
          .steps = fit.refined.steps,
          .chains = kept.chains,
          .groups = std::move(groups),
          .data = std::move(data)};
}

void write_posterior_run(const RunFolder& folder, const PosteriorRunFiles& files) {
  const std::string verdict = "verdict = " + files.verdict;
  folder.write("config.toml", files.config);
  folder.write("q.json", files.q);
  // At the same time: they wait for the disk.
  std::vector<std::future<void>> tables;
  const auto write_table = [&](const char* name, const DrawTable& draws, const std::string& about) {
    tables.push_back(
        std::async(std::launch::async, [&folder, &files, &draws, name, comments = std::vector{about, verdict}] {
          write_stan_csv(folder.path() / name, draws, comments, files.stan_version);
        }));
  };
  write_table("draws_q.csv", files.draws_q, "independent draws of q");
  write_table(
      "draws.csv", files.draws,
      fmt::format("refined draws: {} chains of {}, one after another, made of the fit's short chains up to step {}",
                  files.chains, files.draws.values.cols() / files.chains, files.steps));
  write_table("draws_unconstrained.csv", files.draws_unconstrained,
              "the refined draws over the unconstrained coordinates");
  for (auto& table : tables) table.get();
  folder.write("summary.json", files.summary);
}

void write_warm_start_of(const std::filesystem::path& folder, const Posterior& posterior, const CheckedFit& fit,
                         const PosteriorRunFiles& files, int chains) {
  const Matrix<double>& z = files.draws_unconstrained.values;
  const int d = posterior.dimension(), n = z.cols();
  const auto parameters = static_cast<int>(posterior.parameter_count());
  WarmStart start{{posterior.names().begin(), posterior.names().begin() + parameters},
                  Matrix<double>(parameters, chains),
                  {},
                  fit.refined.step_size};
  for (int c = 0; c < chains; ++c)
    copy(files.draws.values.column(c * (n / chains)).first(posterior.parameter_count()), start.inits.column(c));
  const bool dense = d <= most_full_dimensions;
  std::vector<double> mean(d);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < d; ++k) mean[k] += z(k, i) / n;
  start.inverse_metric = Matrix<double>(d, dense ? d : 1);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < d; ++k)
      for (int j = dense ? 0 : k; j <= k; ++j) {
        const double product = (z(k, i) - mean[k]) * (z(j, i) - mean[j]) / (n - 1);
        start.inverse_metric(k, dense ? j : 0) += product;
        if (dense && j != k) start.inverse_metric(j, k) += product;
      }
  write_warm_start(folder, start);
}

}  // namespace hone
