#include "app/cli/experiments.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "app/report/best.hpp"
#include "app/report/claims.hpp"
#include "app/report/fig1.hpp"
#include "app/report/fig3.hpp"
#include "app/run/fig1.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

Experiment make_fig1(const ExperimentOptions& options) {
  const auto& given = options.choice.seeds;
  const int seeds = given.empty() ? settings_of(options.choice.scale).fig1_seeds : static_cast<int>(given.size());
  const std::vector<Cell> cells = fig1_cells(seeds);
  const auto report = [cells, seeds](const ReportContext& context) -> std::string {
    const CellList list(context.folder, cells);
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!list.is_done(i)) return "# Figure 1\n\nNot all of its cells are done.\n";
    const Fig1Report fig1 = report_fig1(context.folder, seeds);
    return fig1.text + (fig1.picture.empty() ? "No picture: gnuplot is not installed. Install it (Debian: apt-get "
                                               "install gnuplot-nox) and repeat the command.\n"
                                             : fmt::format("Picture: {}\n", fig1.picture.string()));
  };
  return {.name = "fig1", .cells = cells, .timed = {}, .trainings = {}, .report = report};
}

// An experiment whose entries (rows of a table, points of a figure) are trainings. Runs those whose data are available.
template <class Entry, class Report>
Experiment of_trainings(const std::string& name, const std::vector<Entry>& entries, const ExperimentOptions& options,
                        Report report) {
  Experiment experiment{
      .name = name, .cells = {}, .timed = {}, .trainings = {}, .report = [entries, report](const ReportContext& c) {
        return report(entries, c);
      }};
  for (const Entry& entry : entries)
    if (!options.missing.contains(entry.cell.config.data)) experiment.trainings.push_back(entry.cell);
  return experiment;
}

Experiment make_table1(const ExperimentOptions& options) {
  return of_trainings("table1", table1_rows(options.choice), options, report_table1);
}

Experiment make_best(const ExperimentOptions& options) {
  return of_trainings("best", best_rows(options.choice), options, report_best);
}

Experiment make_fig2(const ExperimentOptions& options) {
  return of_trainings("fig2", fig2_points(options.choice), options, report_fig2);
}

Experiment make_fig3(const ExperimentOptions& options) {
  const auto points = fig3_points(options.choice.scale, options.timing);
  Experiment experiment{
      .name = "fig3", .cells = {}, .timed = {}, .trainings = {}, .report = [points](const ReportContext& c) {
        return report_fig3(points, c);
      }};
  for (const Fig3Point& point : points)
    if (point.here() && !options.missing.contains(point.data_set)) experiment.timed.push_back(point.cell);
  return experiment;
}

// Claims that need data use Fashion-MNIST if it is there, else synthetic data.
Experiment make_claims(const ExperimentOptions& options) {
  const TrainingChoice& choice = options.choice;
  const bool synthetic = choice.scale == Scale::smoke || options.missing.contains("fashion-mnist");
  const std::string data = synthetic ? "synthetic" : "fashion-mnist";
  const ClaimCells claims{.alpha = alpha_runs(choice.scale, choice.seeds),
                          .li2017 = li2017_runs(choice.scale, choice.seeds),
                          .gradient = gradient_points(choice.scale),
                          .local = local_baseline_cells(choice, data),
                          .seconds = seconds_points(choice.scale, data, options.timing)};
  Experiment experiment{.name = "claims",
                        .cells = {},
                        .timed = {},
                        .trainings = {claims.local.from_start, claims.local.shared_first},
                        .report = [claims](const ReportContext& c) { return report_claims(claims, c); }};
  const auto add = [](const auto& items, std::vector<Cell>& to) {
    for (const auto& item : items) to.push_back(item.cell);
  };
  add(claims.alpha, experiment.cells);
  add(claims.li2017, experiment.cells);
  add(claims.gradient, experiment.cells);
  add(claims.seconds, experiment.timed);
  return experiment;
}

}  // namespace

const DataSplits& DataShelf::get(const std::string& name) {
  if (!loaded_.contains(name)) loaded_[name] = load_data({.name = name, .data_dir = data_dir_});
  return loaded_[name];
}

std::string DataShelf::missing(const std::string& name) {
  try {
    get(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::vector<std::string>& experiment_names() {
  static const std::vector<std::string> names = {"fig1", "claims", "fig3", "table1", "fig2", "best"};
  return names;
}

std::vector<std::string> data_of_experiment(const std::string& name, Scale scale) {
  if (name == "fig1" || (name == "claims" && scale == Scale::smoke)) return {};
  if (name == "claims") return {"fashion-mnist"};
  return {"fashion-mnist", "mnist"};
}

Experiment make_experiment(const std::string& name, const ExperimentOptions& options) {
  if (name == "fig1") return make_fig1(options);
  if (name == "claims") return make_claims(options);
  if (name == "fig3") return make_fig3(options);
  if (name == "table1") return make_table1(options);
  if (name == "fig2") return make_fig2(options);
  if (name == "best") return make_best(options);
  throw InputError("there is no experiment '" + name + "'");
}

void keep_matching(Experiment& experiment, const std::string& pattern) {
  const auto differs = [&](const auto& cell) { return ::fnmatch(pattern.c_str(), cell.id.c_str(), 0) != 0; };
  std::erase_if(experiment.cells, differs);
  std::erase_if(experiment.timed, differs);
  std::erase_if(experiment.trainings, differs);
}

}  // namespace hone
