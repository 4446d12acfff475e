#include "app/run/evaluate.hpp"

#include <fmt/format.h>

#include "app/run/json.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/test_curve.hpp"
#include "app/run/trained_model.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

void add_importance(const RunEvaluation& e, Json& json) {
  const EvaluationSummary& s = *e.summary;
  Json proposals = Json::array(), effective = Json::array();
  for (int j = 0; j < proposal_count; ++j) {
    proposals.push_back(e.config->proposals[j] ? Json(s.proposal[j].mean) : Json());
    effective.push_back(e.config->proposals[j] ? Json(s.effective_samples[j]) : Json());
  }
  json = {{"value", s.best.mean},
          {"se", s.best.se},
          {"mixture", s.mixture.mean},
          {"mixture_se", s.mixture.se},
          {"pilot", s.pilot.mean},
          {"pilot_se", s.pilot.se},
          {"proposals", proposals},
          {"points", s.points},
          {"points_without_weight", s.points_without_weight},
          {"samples", e.config->samples},
          {"effective_samples", effective},
          {"mixture_effective_samples", s.mixture_effective_samples}};
  if (s.exact) json["exact"] = s.exact->mean;
}

Json json_of(const RunAnnealing& a) {
  const AnnealingSummary& s = a.summary;
  Json json = {{"log_likelihood", s.log_likelihood.mean},
               {"se", s.log_likelihood.se},
               {"chain_se", s.chain_se},
               {"ess", s.effective_chains},
               {"acceptance", s.acceptance},
               {"steps", a.config.steps},
               {"chains", a.config.chains},
               {"leapfrog", a.config.leapfrog},
               {"points", s.points},
               {"points_without_weight", s.points_without_weight},
               {"rejected_nonfinite", s.rejected_nonfinite},
               {"seconds", a.seconds}};
  if (a.check)
    json["check"] = {{"points", a.check->points},
                     {"lower", json_of(a.check->lower)},
                     {"upper", json_of(a.check->upper)},
                     {"gap", json_of(a.check->gap)}};
  return json;
}

// The new results, then those of `old` that are of the same model and were not requested again.
Json json_of(const RunEvaluation& e, const Json& old) {
  Json json = Json::object();
  if (e.summary) add_importance(e, json);
  json["split"] = e.split;
  json["iteration"] = e.iteration;
  if (e.annealing) json["ais"] = json_of(*e.annealing);
  if (!old.is_object() || !old.contains("iteration") || old["iteration"] != e.iteration) return json;
  for (const auto& [key, value] : old.items())
    if (!json.contains(key)) json[key] = value;
  return json;
}

Json summary_of(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json json = parse_json(read_file(path));
  if (!json.is_object())
    throw InputError(fmt::format("{}: no JSON object; it may have been cut off. hone train --resume writes it again",
                                 path.string()));
  return json;
}

// Reports how many points are done in addition to `before`; throws Stopped if asked to stop.
std::function<void(int)> watched(Progress& progress, const EvaluateOptions& options, int before = 0) {
  return [&progress, stop = options.stop, before](int done) {
    progress.update(before + done, "");
    if (stop && *stop != 0) throw Stopped();
  };
}

RunAnnealing anneal(Engine& engine, const DataSet& data, const EvaluateOptions& options, int points) {
  const AnnealingOptions& wanted = *options.annealing;
  RunAnnealing result{.config = wanted.config, .summary = {}, .seconds = 0, .check = {}};
  {
    Progress progress(stderr, options.progress, "anneal", "points", points);
    const Stopwatch watch;
    const auto found = engine.anneal(data, {wanted.config, points}, watched(progress, options));
    result.summary = summarize(found, wanted.config);
    result.seconds = watch.seconds();
  }
  if (wanted.check == 0) return result;
  const SimulatedData simulated = engine.simulate(wanted.check);
  Progress progress(stderr, options.progress, "check annealing", "points", 2 * wanted.check);
  const auto lower = engine.anneal(simulated.data, {wanted.config}, watched(progress, options));
  const auto upper =
      engine.anneal(simulated.data, {wanted.config, {}, simulated.z}, watched(progress, options, wanted.check));
  Moments gap;
  for (int i = 0; i < wanted.check; ++i) gap.add(upper[i].estimate.log_likelihood - lower[i].estimate.log_likelihood);
  result.check = AnnealingCheck{.points = wanted.check,
                                .lower = summarize(lower, wanted.config).log_likelihood,
                                .upper = summarize(upper, wanted.config).log_likelihood,
                                .gap = gap.estimate()};
  return result;
}

}  // namespace

RunEvaluation evaluate_run(const fs::path& folder, const EvaluateOptions& options) {
  const std::function<void(const std::string&)> nobody = [](const std::string&) {};
  const auto& say = options.say ? options.say : nobody;
  if (fs::exists(folder / "config.toml"))
    RunFolder::check(folder, Reuse::run);  // before the work, whose results go there
  const auto model = load_model(folder, options.data_dir, options.threads, options.warn ? options.warn : say,
                                options.lead, options.which);
  const DataSet& data =
      split_of(model->data, options.split,
               fmt::format("; 'hone score {0} FILE' takes data from a file, '--split train' those of the training, and "
                           "'hone train --set split=0.1' holds some out for tests",
                           folder.string()));
  Json summary = summary_of(folder / "summary.json");
  const int points = std::min(data.size(), options.points.value_or(data.size()));
  const std::string which =
      points < data.size() ? fmt::format("the first {} of {}", points, data.size()) : fmt::format("all {}", points);
  say(fmt::format("data: {} ({} {} data)", model->data.origin, which, options.split));

  const Settings settings = train_settings(model->config);
  RunEvaluation result{.model = model_in_words(settings.text("model"), settings.text("likelihood")),
                       .data = model->data.name,
                       .binarization = model->data.binarization,
                       .objective = settings.text("objective"),
                       .split = options.split,
                       .iteration = model->engine->iteration(),
                       .points = points,
                       .config = options.importance,
                       .summary = {},
                       .annealing = {},
                       .json = {},
                       .not_written = {}};
  try {
    if (options.importance) {
      EvaluationConfig config = *options.importance;
      config.points = points;
      Progress progress(stderr, options.progress, "evaluate", "points", points);
      result.summary = summarize(model->engine->evaluate(data, config, watched(progress, options)));
    }
    if (options.annealing) result.annealing = anneal(*model->engine, data, options, points);
  } catch (const DataError& error) {
    throw InputError(
        fmt::format("{} data of {} ({}): {}", options.split, model->data.name, model->data.origin, error.what()));
  }
  const bool best = options.which == WhichModel::best;
  Json& entry = summary[(best ? "best_" : "") + options.split + "_log_likelihood"];
  entry = json_of(result, entry);
  result.json = entry.dump(2) + "\n";
  try {
    write_file(folder / "summary.json", summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    if (options.split == "test" && result.summary && !best)
      add_test_row(folder, result.iteration, *result.config, *result.summary);
  } catch (const Error& error) {
    result.not_written = error.what();
  }
  return result;
}

}  // namespace hone
