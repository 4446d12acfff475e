#include "app/report/training_results.hpp"

#include <fmt/format.h>

#include <cmath>

#include "app/run/paper/provenance.hpp"
#include "app/run/paper/scale.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

// Why a cell has no figure, or fewer seeds than requested.
std::string remark(const TrainingCell& cell, const CellResults& results, const ReportContext& context) {
  if (results.seeds.size() == cell.seeds.size()) return "";
  if (context.missing.contains(cell.config.data)) return "no data";
  if (results.seeds.empty()) return results.unreadable > 0 ? "cannot be read" : "not done";
  return fmt::format("{} of {}{}", results.seeds.size(), cell.seeds.size(),
                     results.unreadable > 0 ? ", cannot be read" : "");
}

}  // namespace

void write_report(const ReportContext& context, const std::string& name, const std::string& text) {
  write_file(context.folder / name,
             fmt::format("{}\nComputed by\n\n```\n{}```\n", text, read_provenance(context.folder)));
}

std::string mean_and_sd(const Moments& moments, int digits) {
  if (moments.count() == 0) return "—";
  const std::string mean = fmt::format("{:.{}f}", moments.mean(), digits);
  return moments.count() == 1 ? mean : fmt::format("{} ± {:.{}f}", mean, moments.sd(), digits);
}

CellResults results_of(const TrainingCell& cell, const ReportContext& context) {
  CellResults all;
  for (const std::uint64_t seed : cell.seeds) {
    std::optional<TestResults> found;
    try {
      found = test_results(context.folder, cell, seed);
    } catch (const InputError&) {  // a damaged folder, or another run: the code that runs the cell reports it
      ++all.unreadable;
    }
    if (!found) continue;
    all.went_wrong += found->went_wrong;
    all.best.add(found->best.mean);
    all.mixture.add(found->mixture.mean);
    if (found->ais) all.ais.add(found->ais->mean);
    if (!std::isnan(found->best.se)) all.se.add(found->best.se);
    all.seeds.emplace_back(seed, *found);
  }
  return all;
}

std::string title_of(const std::string& data) { return data == "mnist" ? "MNIST" : "Fashion-MNIST"; }

const char* const result_headings = "ours | difference | mixture | AIS | se | seeds |";

const char* const result_headings_text =
    "Average test log-likelihood in nats. *paper*: as printed. *ours*: the paper's measure, the best of three "
    "proposals for each datum (no lower bound), mean ± standard deviation over seeds. *mixture*: one proposal, the "
    "equal mixture of the three, a lower bound in expectation. *AIS*: annealed importance sampling, where `hone eval "
    "--ais` was run. *se*: standard error of our figure over test data.\n";

std::string seeds_text(const TrainingCell& cell, const CellResults& results, const ReportContext& context) {
  const std::string why = remark(cell, results, context);
  return (why.empty() ? std::to_string(results.seeds.size()) : why) +
         (results.went_wrong > 0 ? fmt::format(", {} went wrong", results.went_wrong) : "");
}

std::string result_columns(const TrainingCell& cell, const CellResults& results, std::optional<double> paper,
                           const ReportContext& context) {
  const std::string why = remark(cell, results, context);
  if (results.seeds.empty()) return fmt::format("{} | — | — | — | — | 0 |", why);
  return fmt::format("{} | {} | {} | {} | {} | {} |", mean_and_sd(results.best, 2),
                     paper ? fmt::format("{:+.2f}", results.best.mean() - *paper) : "—",
                     mean_and_sd(results.mixture, 2), mean_and_sd(results.ais, 2),
                     results.se.count() > 0 ? fmt::format("{:.2f}", results.se.mean()) : "—",
                     seeds_text(cell, results, context));
}

const char* const result_line_columns =
    "seed,iterations,best_of_three,best_of_three_se,mixture,mixture_se,ais,ais_se,binarization,engine,training_seconds,"
    "runs_side_by_side";

std::string result_lines(const TrainingCell& cell, const CellResults& results, const std::string& head) {
  std::string text;
  for (const auto& [seed, f] : results.seeds)
    text += fmt::format("{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{},{},{},{},{:.3f},{}\n", head, seed,
                        cell.config.iterations, f.best.mean, f.best.se, f.mixture.mean, f.mixture.se,
                        f.ais ? fmt::format("{:.4f}", f.ais->mean) : "", f.ais ? fmt::format("{:.4f}", f.ais->se) : "",
                        f.binarization, f.engine, f.seconds, f.side_by_side);
  return text;
}

std::string cells_text(const TrainingCell& cell) {
  const EvaluationConfig& e = *cell.evaluation;
  return fmt::format("{} iterations (the paper: {}); {} test data, {} draws from each of three proposals.\n",
                     cell.config.iterations, paper_iterations,
                     e.points ? fmt::format("the first {}", *e.points) : std::string("all"), e.samples);
}

std::string missing_text(const ReportContext& context) {
  std::string text;
  for (const auto& [data, why] : context.missing)
    text += fmt::format("The cells on {} were left out because its data are missing (hone data get {}).\n", data, data);
  return text;
}

}  // namespace hone
