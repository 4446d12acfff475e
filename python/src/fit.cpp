#include "python/src/fit.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <ctime>

#include "app/run/fit_table.hpp"
#include "app/run/json.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/progress.hpp"
#include "app/run/watched_posterior.hpp"
#include "hone/base/cpus.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/target/density.hpp"
#include "hone/target/stan.hpp"
#include "python/src/messages.hpp"

namespace hone::python {
namespace {

// What a run folder holds, as texts and arrays.
nb::dict dict_of(PosteriorRunFiles files) {
  nb::dict result;
  result["config"] = files.config;
  result["q"] = files.q;
  result["summary"] = files.summary;
  result["stan_version"] = files.stan_version;
  result["names"] = files.draws.names;
  result["coordinates"] = files.draws_unconstrained.names;
  result["draws_unconstrained"] = array_of(std::move(files.draws_unconstrained.values));
  result["draws_q"] = array_of(std::move(files.draws_q.values));
  result["draws"] = array_of(std::move(files.draws.values));
  result["log_p_q"] = array_of(std::move(files.draws_q.log_p));
  result["log_q_q"] = array_of(std::move(files.draws_q.log_q));
  result["log_p"] = array_of(std::move(files.draws.log_p));
  result["log_q"] = array_of(std::move(files.draws.log_q));
  std::vector<double> acceptance, diverging, energy;
  for (const StateMove& move : files.draws.moves) {
    acceptance.push_back(move.acceptance);
    diverging.push_back(move.diverged);
    energy.push_back(move.energy);
  }
  result["acceptance_rate"] = array_of(std::move(acceptance));
  result["diverging"] = array_of(std::move(diverging));
  result["energy"] = array_of(std::move(energy));
  result["short_chain"] = array_of(std::vector<double>(files.draws.short_chain.begin(), files.draws.short_chain.end()));
  return result;
}

std::vector<double> numbers(const nb::handle& array) {
  const auto values = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array);
  return {values.data(), values.data() + values.shape(0)};
}

Matrix<double> matrix(const nb::handle& array) { return matrix_of(nb::cast<Points>(array)); }

// The steps to the draws; folders of older versions have none.
std::vector<StateMove> moves_of(const nb::dict& parts) {
  std::vector<StateMove> moves;
  if (!parts.contains("energy")) return moves;
  const std::vector<double> acceptance = numbers(parts["acceptance_rate"]), diverging = numbers(parts["diverging"]),
                            energy = numbers(parts["energy"]);
  for (std::size_t i = 0; i < energy.size(); ++i) moves.push_back({acceptance.at(i), energy[i], diverging.at(i) != 0});
  return moves;
}

// The chain of the fit to each draw; folders of older versions do not have it.
std::vector<int> short_chain_of(const nb::dict& parts) {
  if (!parts.contains("short_chain")) return {};
  const std::vector<double> chains = numbers(parts["short_chain"]);
  return {chains.begin(), chains.end()};
}

// What Stan's compiler tells Python, and how Python's Ctrl-C ends it.
StanOptions stan_options(Watch& watch, const Stop* stop) {
  StanOptions options;
  options.progress = [&watch](const std::string& text) { watch.say(in_python(text), 0); };
  options.stop = [&watch, stop] {
    watch.tick(0);  // lets Python see Ctrl-C
    return stop && stop->set.load();
  };
  return options;
}

}  // namespace

Matrix<double> matrix_of(const Points& array) {
  const MatrixView<const double> points = view_of(array);
  Matrix<double> result(points.rows(), points.cols());
  std::ranges::copy(points.flat(), result.view().flat().begin());
  return result;
}

ModelParts::ModelParts(DensityParts density, std::string name)
    : in_python_(true), model_(std::move(name)), posterior_(std::make_unique<PythonPosterior>(std::move(density))) {}

const Posterior& ModelParts::open(Watch& watch, const Stop* stop) const {
  const std::lock_guard lock(opening_);
  if (!posterior_) {
    PosteriorRunConfig config;
    config.model = model_;
    config.data = data_;
    posterior_ = open_posterior(config, stan_options(watch, stop));
  }
  return *posterior_;
}

nb::tuple names_of(const ModelParts& parts, const Stop& stop, nb::object tell) {
  Watch watch(std::move(tell));
  const Posterior* posterior = nullptr;
  {
    const nb::gil_scoped_release released;
    posterior = &parts.open(watch, &stop);
  }
  return nb::make_tuple(posterior->names(), posterior->parameter_count(), posterior->coordinate_names());
}

std::string install(const std::string& wheel, const Stop& stop, nb::object tell) {
  Watch watch(std::move(tell));
  const nb::gil_scoped_release released;
  install_stan(wheel, stan_options(watch, &stop));
  return stan_in_use();
}

nb::dict dict_of(const Judgement& judgement) {
  nb::dict result;
  result["verdict"] = name_of(judgement.verdict);
  result["reasons"] = judgement.reasons;
  result["notes"] = judgement.notes;
  return result;
}

nb::dict fit(const ModelParts& parts, const SettingTexts& settings, std::optional<Points> init, Stop& stop,
             nb::object tell) {
  PosteriorRunConfig config;
  config.model = parts.model();
  config.data = parts.data();
  // A density in Python holds the GIL, so it gains nothing from threads.
  if (!parts.in_python()) config.check.fit.threads = default_threads();
  Settings table = posterior_run_settings(config);
  apply(table, settings);
  resolve(config);
  config.check.fit.budget.stop = &stop.set;
  if (init) config.check.fit.init = matrix_of(*init);
  Watch watch(std::move(tell));
  PosteriorRunFiles files;
  {
    const nb::gil_scoped_release released;
    const Posterior& posterior = parts.open(watch, &stop);
    std::vector<DataArray> data = data_arrays(config);
    const WatchedPosterior watched(posterior, [&](std::int64_t done) { watch.tick(done); });
    const CheckedFit result = fit_and_check(
        watched, config.check, [&](const std::string& text, std::int64_t gradients) { watch.say(text, gradients); });
    files = posterior_run_files(posterior, result, config, std::move(data));
  }
  return dict_of(std::move(files));
}

void save_fit(const std::string& path, const nb::dict& parts, const std::string& verdict, int steps) {
  const auto names = nb::cast<std::vector<std::string>>(parts["names"]);
  const PosteriorRunFiles files{
      .config = nb::cast<std::string>(parts["config"]),
      .q = nb::cast<std::string>(parts["q"]),
      .summary = nb::cast<std::string>(parts["summary"]),
      .draws_q = {names, matrix(parts["draws_q"]), numbers(parts["log_p_q"]), numbers(parts["log_q_q"])},
      .draws = {names, matrix(parts["draws"]), numbers(parts["log_p"]), numbers(parts["log_q"]), moves_of(parts),
                short_chain_of(parts)},
      .draws_unconstrained = {nb::cast<std::vector<std::string>>(parts["coordinates"]),
                              matrix(parts["draws_unconstrained"]), numbers(parts["log_p"]), numbers(parts["log_q"])},
      .verdict = verdict,
      .stan_version = parts.contains("stan_version") ? nb::cast<std::string>(parts["stan_version"]) : "",
      .steps = steps,
      .chains = parse_json(nb::cast<std::string>(parts["summary"])).value("chains", 1)};
  write_posterior_run(RunFolder(path), files);
}

void save_warm_start(const std::string& folder, const std::vector<std::string>& names, const Points& inits,
                     const Points& inverse_metric, double step_size) {
  write_warm_start(folder, {names, matrix_of(inits), matrix_of(inverse_metric), step_size});
}

double time_evaluations(const ModelParts& parts, const Points& z, int calls, bool gradients_alone) {
  Watch watch{nb::none()};
  const nb::gil_scoped_release released;
  const Posterior& posterior = parts.open(watch, nullptr);
  const Matrix<double> points = matrix_of(z);  // where a kernel has them
  std::vector<double> value(static_cast<std::size_t>(points.cols()));
  Matrix<double> gradient(points.rows(), points.cols());
  posterior.evaluate(points, Want::both, value, gradient);
  const std::clock_t begun = std::clock();
  const Want want = gradients_alone ? Want::gradient : Want::both;
  for (int i = 0; i < calls; ++i) posterior.evaluate(points, want, value, gradient);
  return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
}

std::string gradient_complaint(const ModelParts& parts, const Points& z) {
  Watch watch{nb::none()};
  const nb::gil_scoped_release released;
  const Posterior& posterior = parts.open(watch, nullptr);
  return hone::gradient_complaint(posterior, view_of(z).column(0), posterior.coordinate_names());
}

nb::tuple table_of(const std::string& summary, const std::vector<std::string>& show) {
  const FitTable table = fit_table(parse_json(summary), {.names = show, .hint = "table(\"{}\")"});
  nb::list titles, lines;
  for (const auto& column : table.columns) titles.append(column.title);
  for (const auto& line : table.lines) lines.append(nb::make_tuple(line.name, line.cells, line.parameter));
  return nb::make_tuple(titles, lines);
}

std::string table_text(const std::string& summary, const std::vector<std::string>& show, int width) {
  return text_of(fit_table(parse_json(summary), {.names = show, .hint = "table(\"{}\")"}), width);
}

nb::dict judge_again(const std::string& folder, double mean, double sd, double vcd) {
  const StoredFindings stored = read_findings(folder);
  const auto either = [](double given, double usual) { return std::isnan(given) ? usual : given; };
  return dict_of(judge(stored.findings, {either(mean, stored.tolerances.mean), either(sd, stored.tolerances.sd),
                                         either(vcd, stored.tolerances.vcd)}));
}

}  // namespace hone::python
