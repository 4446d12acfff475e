// summary.json of `hone fit`: written here, and read again by `hone check`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/run/json.hpp"
#include "app/run/kept_draws.hpp"
#include "app/run/method_settings.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/provenance.hpp"
#include "app/run/run_folder.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

// JSON has no NaN or infinity: NaN is null, infinities are texts.
Json json_number(double x) {
  if (std::isnan(x)) return nullptr;
  if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
  return x;
}

double number(const Json& value) {
  if (value.is_null()) return std::nan("");
  if (value == "Infinity") return HUGE_VAL;
  if (value == "-Infinity") return -HUGE_VAL;
  return value.get<double>();
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> result;
  for (const Json& value : list) result.push_back(number(value));
  return result;
}

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

Json json_of(const std::vector<Direction>& directions) {
  Json list = Json::array();
  for (const Direction& d : directions)
    list.push_back({{"sd_ratio", json_number(d.sd_ratio)}, {"vector", list_of(d.vector)}});
  return list;
}

std::vector<Direction> directions(const Json& list) {
  std::vector<Direction> result;
  for (const Json& d : list) result.push_back({numbers(d.at("vector")), number(d.at("sd_ratio"))});
  return result;
}

Json json_of(const ChainChecks& c) {
  return {{"nested_rhat", json_number(c.nested_rhat)},
          {"nested_rhat_coordinate", c.rhat_coordinate},
          {"spread", json_number(c.spread)},
          {"spread_limit", json_number(c.spread_limit)},
          {"drift", json_number(c.drift)},
          {"drift_limit", c.drift_limit},
          {"drift_coordinate", c.drift_coordinate},
          {"memory", json_number(c.memory)},
          {"memory_limit", c.memory_limit},
          {"memory_coordinate", c.memory_coordinate},
          {"effective", json_number(c.effective)},
          {"tail_effective", json_number(c.tail_effective)},
          {"effective_needed", c.effective_needed},
          {"effective_per_chain", json_number(c.per_chain)},
          {"sd_error", json_number(c.sd_error)},
          {"error", json_number(c.error)},
          {"error_wanted", c.error_wanted},
          {"acceptance", c.acceptance},
          {"proposals", c.proposals},
          {"divergences", c.divergences},
          {"stuck", c.stuck},
          {"bfmi", json_number(c.bfmi)},
          {"super_chains", c.super_chains},
          {"chains", c.chains},
          {"chains_begun", c.chains_begun},
          {"tail_index", json_number(c.tail_index)},
          {"tail_coordinate", c.tail_coordinate},
          {"burn_in", c.burn_in},
          {"crosses_modes", c.crosses_modes}};
}

ChainChecks chain_checks(const Json& j) {
  ChainChecks c;
  c.nested_rhat = number(j.at("nested_rhat"));
  c.rhat_coordinate = j.at("nested_rhat_coordinate");
  c.spread = number(j.at("spread"));
  c.spread_limit = number(j.at("spread_limit"));
  c.drift = number(j.at("drift"));
  c.drift_limit = j.at("drift_limit");
  c.drift_coordinate = j.at("drift_coordinate");
  c.memory = number(j.at("memory"));
  c.memory_limit = j.at("memory_limit");
  c.memory_coordinate = j.at("memory_coordinate");
  c.effective = number(j.at("effective"));
  c.tail_effective = number(j.at("tail_effective"));
  c.effective_needed = j.at("effective_needed");
  c.per_chain = number(j.at("effective_per_chain"));
  if (j.contains("sd_error")) c.sd_error = number(j.at("sd_error"));  // not in folders of earlier versions
  c.error = number(j.at("error"));
  c.error_wanted = j.at("error_wanted");
  c.acceptance = j.at("acceptance");
  c.proposals = j.at("proposals");
  c.divergences = j.at("divergences");
  c.stuck = j.at("stuck");
  c.bfmi = number(j.at("bfmi"));
  c.super_chains = j.at("super_chains");
  c.crosses_modes = j.value("crosses_modes", false);  // runs of earlier versions do not say these
  c.chains = j.value("chains", 0);
  c.chains_begun = j.value("chains_begun", 0);
  c.tail_index = j.contains("tail_index") ? number(j["tail_index"]) : 0;
  c.tail_coordinate = j.value("tail_coordinate", -1);
  c.burn_in = j.value("burn_in", c.burn_in);
  return c;
}

Json json_of(const Findings& f) {
  Json pairs = Json::array();
  for (const PairsAt& at : f.at)
    pairs.push_back({{"t", at.steps},
                     {"vcd", json_number(at.vcd.mean)},
                     {"se", json_number(at.vcd.se)},
                     {"acceptance", at.acceptance},
                     {"squared_jump", json_number(at.jump)},
                     {"correlation_log_p", json_number(at.correlation)}});
  Json drifts = Json::array();
  for (const DriftAt& at : f.drifts)
    drifts.push_back({{"t", at.steps}, {"drift", json_number(at.drift)}, {"limit", json_number(at.limit)}});
  return {{"dimension", f.dimension},
          {"starts", f.starts},
          {"starts_left_out", f.left_out},
          {"modes", f.modes},
          {"fit_converged", f.fit_converged},
          {"steps", f.steps},
          {"acceptance_aim", f.acceptance_aim},
          {"capped", f.capped},
          {"coordinates", f.coordinate_names},
          {"chain_coordinates", f.chain_names},
          {"chains", json_of(f.chains)},
          {"sd_error_name", f.sd_error_name},
          {"pairs", pairs},
          {"drifts", drifts},
          {"vcd", {{"mean", json_number(f.vcd.mean)}, {"se", json_number(f.vcd.se)}}},
          {"k_hat", json_number(f.q.k_hat)},
          {"effective_draws", f.q.effective_draws},
          {"p_value", f.q.p_value},
          {"p_value_flips", f.q.p_value_flips},
          {"mean_shift", list_of(f.q.shift)},
          {"sd_ratio", list_of(f.q.sd_ratio)},
          {"narrowest", json_of(f.q.narrowest)},
          {"widest", json_of(f.q.widest)},
          {"mode_mass", list_of(f.q.mode_mass)},
          {"q_weight", list_of(f.q.q_weight)},
          {"tail_growth", json_number(f.q.tail_growth)},
          {"natural",
           {{"shift", json_number(f.natural.shift)},
            {"shift_se", json_number(f.natural.shift_se)},
            {"shift_name", f.natural.shift_name},
            {"sd_ratio", json_number(f.natural.sd_ratio)},
            {"sd_ratio_se", json_number(f.natural.sd_ratio_se)},
            {"sd_name", f.natural.sd_name},
            {"tail_index", json_number(f.natural.tail_index)},
            {"tail_name", f.natural.tail_name}}}};
}

Findings findings_of(const Json& j) {
  Findings f;
  f.dimension = j.at("dimension");
  f.starts = j.at("starts");
  f.left_out = j.at("starts_left_out");
  f.modes = j.at("modes");
  f.fit_converged = j.at("fit_converged");
  f.steps = j.at("steps");
  f.acceptance_aim = j.value("acceptance_aim", f.acceptance_aim);
  f.capped = j.at("capped");
  f.coordinate_names = j.at("coordinates").get<std::vector<std::string>>();
  f.chain_names = j.at("chain_coordinates").get<std::vector<std::string>>();
  f.chains = chain_checks(j.at("chains"));
  f.sd_error_name = j.value("sd_error_name", "");  // not in folders of earlier versions
  for (const Json& at : j.at("pairs"))
    f.at.push_back({at.at("t"),
                    {number(at.at("vcd")), number(at.at("se"))},
                    at.at("acceptance"),
                    number(at.at("squared_jump")),
                    number(at.at("correlation_log_p"))});
  for (const Json& at : j.value("drifts", Json::array()))  // not in folders of earlier versions
    f.drifts.push_back({at.at("t"), number(at.at("drift")), number(at.at("limit"))});
  f.vcd = {number(j.at("vcd").at("mean")), number(j.at("vcd").at("se"))};
  f.q.k_hat = number(j.at("k_hat"));
  f.q.effective_draws = j.at("effective_draws");
  f.q.p_value = j.at("p_value");
  f.q.p_value_flips = j.at("p_value_flips");
  f.q.shift = numbers(j.at("mean_shift"));
  f.q.sd_ratio = numbers(j.at("sd_ratio"));
  f.q.narrowest = directions(j.at("narrowest"));
  f.q.widest = directions(j.at("widest"));
  f.q.mode_mass = numbers(j.at("mode_mass"));
  f.q.q_weight = numbers(j.at("q_weight"));
  f.component_per_mode = f.q.mode_mass.size() > 1;  // not in the file: the program fits no other mixtures
  f.q.tail_growth = number(j.at("tail_growth"));
  const Json& n = j.at("natural");
  f.natural = {.shift = number(n.at("shift")),
               .shift_se = number(n.at("shift_se")),
               .shift_name = n.at("shift_name"),
               .sd_ratio = number(n.at("sd_ratio")),
               .sd_ratio_se = number(n.at("sd_ratio_se")),
               .sd_name = n.at("sd_name"),
               .tail_index = number(n.at("tail_index")),
               .tail_name = n.at("tail_name")};
  return f;
}

// Lists that belong together are of one length; throws Error with the name of one that is not.
void check_lengths(const Findings& f) {
  const auto expect = [](const char* name, std::size_t found, std::size_t expected) {
    if (found != expected) throw Error(fmt::format("'{}' has {} entries, expected {}", name, found, expected));
  };
  const auto dimension = static_cast<std::size_t>(f.dimension);
  expect("coordinates", f.coordinate_names.size(), dimension);
  expect("chain_coordinates", f.chain_names.size(), dimension);
  expect("mean_shift", f.q.shift.size(), dimension);
  expect("sd_ratio", f.q.sd_ratio.size(), dimension);
  expect("widest", f.q.widest.size(), f.q.narrowest.size());
  for (const auto* list : {&f.q.narrowest, &f.q.widest})
    for (const Direction& direction : *list) expect("vector", direction.vector.size(), dimension);
  expect("q_weight", f.q.q_weight.size(), f.q.mode_mass.size());
}

Json json_of(const Tolerances& t) { return {{"mean", t.mean}, {"sd", t.sd}, {"vcd", t.vcd}}; }

Json json_of(const ParameterSummary& s) {
  return {{"q_mean", json_number(s.q_mean)},
          {"q_sd", json_number(s.q_sd)},
          {"mean", json_number(s.mean)},
          {"sd", json_number(s.sd)},
          {"mcse", json_number(s.mcse)},
          {"ess", json_number(s.effective)},
          {"ess_tail", json_number(s.tail_effective)},
          {"rhat", json_number(s.rhat)},
          {"q05", json_number(s.q05)},
          {"q50", json_number(s.q50)},
          {"q95", json_number(s.q95)},
          {"is_mean", json_number(s.is_mean)},
          {"is_sd", json_number(s.is_sd)}};
}

Json stages_of(const PosteriorFit& fit) {
  Json list = Json::array();
  for (const Stage& s : fit.stages)
    list.push_back({{"objective", s.objective},
                    {"iterations", s.iterations},
                    {"change", json_number(s.change)},
                    {"acceptance", s.acceptance},
                    {"step_size", s.step_size},
                    {"skipped", s.skipped},
                    {"gradients", s.gradients}});
  return list;
}

}  // namespace

std::string fit_summary_json(const CheckedFit& fit, const PosteriorRunConfig& config, const FitGroups& groups) {
  Json json = {{"model", config.model}, {"data", config.data}, {"dimension", fit.findings.dimension}};
  json["parameter_count"] = fit.parameter_count;
  json["family"] = family_name(fit.fit.q.kind);
  json["objective"] = name_of(objective_names(), config.objective);
  json["seed"] = config.check.fit.seed;
  const KeptDraws kept = kept_draws(fit.refined, config.check.draws);
  json["draws"] = kept.cols.size();
  json["chains"] = kept.chains;
  json["short_chains"] = kept.short_chains;
  json["chains_run"] = fit.refined.states.chains;
  json["steps"] = fit.refined.steps;
  json["step_size"] = fit.refined.step_size;
  json["adapted_coordinates"] = fit.refined.adapted_coordinates;
  json["gradient_evaluations"] = fit.gradients;
  json["fit_gradient_evaluations"] = fit.fit.gradients;
  json["seconds"] = fit.seconds;
  json["fit_seconds"] = fit.fit_seconds;
  json["dropped_draws"] = fit.fit.dropped_draws + fit.refined.dropped_draws;
  json["rejected_nonfinite"] = fit.fit.rejected_nonfinite;
  json["interrupted"] = fit.interrupted;
  json["verdict"] = name_of(fit.judgement.verdict);
  json["reasons"] = fit.judgement.reasons;
  json["notes"] = fit.judgement.notes;
  Json& vcd = json["vcd"] = Json::object();
  for (const PairsAt& at : fit.findings.at)
    vcd[std::to_string(at.steps)] = {{"mean", json_number(at.vcd.mean)}, {"se", json_number(at.vcd.se)}};
  json["vcd_limit"] = {{"mean", json_number(fit.findings.vcd.mean)}, {"se", json_number(fit.findings.vcd.se)}};
  json["k_hat"] = json_number(fit.findings.q.k_hat);
  json["p_value"] = fit.findings.q.p_value;
  Json& parameters = json["parameters"] = Json::object();
  for (const ParameterSummary& s : fit.parameters) parameters[s.name] = json_of(s);
  json["groups"] = {{"log_likelihood", groups.log_likelihood},
                    {"posterior_predictive", groups.posterior_predictive},
                    {"observed_data", groups.observed_data}};
  json["tolerances"] = json_of(config.check.tolerances);
  json["checks"] = json_of(fit.findings);
  json["stages"] = stages_of(fit.fit);
  json["machine"] = host_text();
  json["hone_version"] = hone_version();
  return json.dump(2) + "\n";
}

Json read_fit_summary(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "summary.json";
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored))
    throw InputError(fmt::format("{}: {}; expected the folder of a 'hone fit'", run.string(),
                                 std::filesystem::exists(run, ignored) ? "is a file" : "there is no such folder"));
  check_is_of("fit", run);
  if (!std::filesystem::exists(path, ignored))
    throw InputError(fmt::format("{}: no summary.json there; expected the folder of a 'hone fit'", run.string()));
  Json json = parse_json(read_file(path));
  if (!json.is_object())
    throw InputError(fmt::format("{}: not a JSON object; expected the summary of a 'hone fit'", path.string()));
  return json;
}

Judgement stored_judgement(const Json& summary) {
  const auto texts = [&](const char* key) {
    std::vector<std::string> result;
    if (const auto list = summary.find(key); list != summary.end() && list->is_array())
      for (const Json& text : *list)
        if (text.is_string()) result.push_back(text);
    return result;
  };
  const auto verdict = summary.find("verdict");
  Judgement judgement{Verdict::trust_neither, texts("reasons"), texts("notes")};
  for (const Verdict known : {Verdict::use_q, Verdict::use_refined})
    if (verdict != summary.end() && *verdict == name_of(known)) judgement.verdict = known;
  return judgement;
}

StoredFindings read_findings(const std::filesystem::path& run) { return findings_in(read_fit_summary(run), run); }

StoredFindings findings_in(const Json& json, const std::filesystem::path& run) {
  const std::filesystem::path path = run / "summary.json";
  try {
    const Json& t = json.at("tolerances");
    StoredFindings stored{findings_of(json.at("checks")), {t.at("mean"), t.at("sd"), t.at("vcd")}};
    check_lengths(stored.findings);
    return stored;
  } catch (const Json::exception& error) {
    std::string words = error.what();  // "[json.exception.type_error.302] type must be number, but is string"
    words.erase(0, std::min(words.find(' ') + 1, words.size()));
    if (words.starts_with("type must be")) words = "an entry has the wrong type: it" + words.substr(4);
    throw InputError(fmt::format("{}: not the summary of a 'hone fit': {}", path.string(), words));
  } catch (const Error& error) {
    throw InputError(fmt::format("{}: damaged: {}", path.string(), error.what()));
  }
}

std::string judgement_json(const Judgement& judgement, const Findings& findings, const Tolerances& tolerances) {
  const Json json = {{"verdict", name_of(judgement.verdict)},
                     {"reasons", judgement.reasons},
                     {"notes", judgement.notes},
                     {"tolerances", json_of(tolerances)},
                     {"checks", json_of(findings)}};
  return json.dump(2) + "\n";
}

}  // namespace hone
