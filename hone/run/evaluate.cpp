#include "hone/run/evaluate.hpp"

#include <fmt/format.h>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/run/json.hpp"
#include "hone/run/run_folder.hpp"
#include "hone/run/train.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

const DataSet& split_of(const DataSplits& data, const std::string& name) {
  const DataSet* split = name == "train" ? &data.train : name == "validation" ? &data.validation : nullptr;
  if (name == "test") split = &data.test;
  if (!split) throw InputError(fmt::format("split '{}': expected train, validation or test", name));
  if (split->size() == 0)
    throw InputError(fmt::format("{} has no {} data; --split names another part", data.name, name));
  return *split;
}

Json json_of(const RunEvaluation& e) {
  const EvaluationSummary& s = e.summary;
  Json proposals = Json::array(), effective = Json::array();
  for (int j = 0; j < proposal_count; ++j) {
    proposals.push_back(e.config.proposals[j] ? Json(s.proposal[j].mean) : Json());
    effective.push_back(e.config.proposals[j] ? Json(s.effective_samples[j]) : Json());
  }
  Json json = {{"value", s.best.mean},
               {"se", s.best.se},
               {"mixture", s.mixture.mean},
               {"mixture_se", s.mixture.se},
               {"pilot", s.pilot.mean},
               {"pilot_se", s.pilot.se},
               {"proposals", proposals},
               {"points", s.points},
               {"points_without_weight", s.points_without_weight},
               {"samples", e.config.samples},
               {"effective_samples", effective},
               {"mixture_effective_samples", s.mixture_effective_samples},
               {"split", e.split},
               {"iteration", e.iteration}};
  if (s.exact) json["exact"] = s.exact->mean;
  return json;
}

void add_to_summary(const fs::path& path, const RunEvaluation& evaluation) {
  Json json = Json::object();
  if (fs::exists(path)) json = parse_json(read_file(path));
  if (!json.is_object()) throw InputError(fmt::format("{}: not the summary of a run", path.string()));
  json[evaluation.split + "_log_likelihood"] = json_of(evaluation);
  write_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// A row for every evaluation of test data, so that a run that is evaluated on its way has a learning curve.
void add_to_history(const fs::path& path, const RunEvaluation& e) {
  const EvaluationSummary& s = e.summary;
  CsvFile file(path, "iteration,points,samples,mixture,mixture_se,best,best_se", e.iteration);
  file.row(fmt::format("{},{},{},{:.8g},{:.3g},{:.8g},{:.3g}", e.iteration, s.points, e.config.samples, s.mixture.mean,
                       s.mixture.se, s.best.mean, s.best.se));
}

}  // namespace

std::string RunEvaluation::to_json() const { return json_of(*this).dump(2) + "\n"; }

RunEvaluation evaluate_run(const fs::path& folder, const EvaluateOptions& options) {
  const auto say = options.say ? options.say : [](const std::string&) {};
  const auto model = load_model(folder, options.data_dir, options.threads, say);
  const DataSet& data = split_of(model->data, options.split);
  const int points = std::min(data.size(), options.evaluation.points.value_or(data.size()));
  say(fmt::format("data: {} (the first {} of {} {} data)", model->data.origin, points, data.size(), options.split));

  const Settings settings = train_settings(model->config);
  RunEvaluation result{settings.text("model"),   model->data.name, model->data.binarization,
                       settings.text("objective"), options.split,  model->engine->iteration(),
                       options.evaluation,       {}};
  Progress progress(stderr, options.progress, "evaluate", "points", points);
  try {
    result.summary = summarize(
        model->engine->evaluate(data, options.evaluation, [&](int done) { progress.update(done, ""); }));
  } catch (const DataError& error) {
    throw InputError(fmt::format("{} data of {} ({}): {}", options.split, model->data.name, model->data.origin,
                                 error.what()));
  }
  add_to_summary(folder / "summary.json", result);
  if (options.split == "test") add_to_history(folder / "test_log_likelihood.csv", result);
  return result;
}

}  // namespace hone
