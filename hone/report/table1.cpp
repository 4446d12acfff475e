#include "hone/report/table1.hpp"

#include <fmt/format.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/report/gnuplot.hpp"
#include "hone/run/paper/provenance.hpp"

namespace hone {
namespace {

// A cell's figures over its seeds.
struct CellFigures {
  Moments best, mixture, ais, se;
  std::vector<std::pair<std::uint64_t, TestFigures>> seeds;
};

CellFigures figures_of(const TrainingCell& cell, const ReportContext& context) {
  CellFigures all;
  for (const std::uint64_t seed : cell.seeds) {
    const auto found = test_figures(context.folder, cell, seed);
    if (!found) continue;
    all.best.add(found->best.mean);
    all.mixture.add(found->mixture.mean);
    if (found->ais) all.ais.add(found->ais->mean);
    if (!std::isnan(found->best.se)) all.se.add(found->best.se);
    all.seeds.emplace_back(seed, *found);
  }
  return all;
}

// Why a cell has no figure, or with fewer seeds than asked for.
std::string remark(const TrainingCell& cell, const CellFigures& figures, const ReportContext& context) {
  if (figures.seeds.size() == cell.seeds.size()) return "";
  if (context.missing.contains(cell.config.data)) return "no data";
  return figures.seeds.empty() ? "not done" : fmt::format("{} of {} seeds", figures.seeds.size(), cell.seeds.size());
}

std::string evaluation_text(const TrainingCell& cell) {
  const EvaluationConfig& e = *cell.evaluation;
  return fmt::format("{} iterations (the paper: {}); {} test data, {} draws of each of three proposals",
                     cell.config.iterations, paper_iterations,
                     e.points ? fmt::format("the first {}", *e.points) : std::string("all"), e.samples);
}

std::string csv_of(const TrainingCell& cell, const CellFigures& figures, const std::string& head) {
  std::string text;
  for (const auto& [seed, f] : figures.seeds)
    text += fmt::format("{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{},{},{},{},{:.3f},{}\n", head, seed,
                        cell.config.iterations, f.best.mean, f.best.se, f.mixture.mean, f.mixture.se,
                        f.ais ? fmt::format("{:.4f}", f.ais->mean) : "", f.ais ? fmt::format("{:.4f}", f.ais->se) : "",
                        f.binarization, f.engine, f.seconds, f.side_by_side);
  return text;
}

constexpr auto csv_columns =
    "seed,iterations,best_of_three,best_of_three_se,mixture,mixture_se,ais,ais_se,binarization,engine,training_seconds,"
    "runs_side_by_side\n";

std::string missing_text(const ReportContext& context) {
  std::string text;
  for (const auto& [data, why] : context.missing)
    text += fmt::format("The cells on {} were left out: its data are not here (hone data get {}).\n", data, data);
  return text;
}

constexpr auto columns_text =
    "Average test log-likelihood in nats. *paper*: as printed. *ours*: the paper's figure, the best of three proposals "
    "for each datum (no lower bound), mean ± standard deviation over seeds. *mixture*: one proposal, the equal mixture of "
    "the three, a lower bound in the mean. *AIS*: annealed importance sampling, where `hone eval --ais` was run. *se*: "
    "standard error of our figure over test data.\n";

std::string binarization_text(const std::vector<std::pair<std::uint64_t, TestFigures>>& seeds, const std::string& data) {
  return seeds.empty() ? "" : fmt::format("{}: {}.\n", data, seeds.front().second.binarization);
}

}  // namespace

std::string mean_and_sd(const Moments& moments, int digits) {
  if (moments.count() == 0) return "—";
  const std::string mean = fmt::format("{:.{}f}", moments.mean(), digits);
  return moments.count() == 1 ? mean : fmt::format("{} ± {:.{}f}", mean, moments.sd(), digits);
}

void write_report(const ReportContext& context, const std::string& name, const std::string& text) {
  write_file(context.folder / name, fmt::format("{}\nComputed by\n\n```\n{}```\n", text, read_provenance(context.folder)));
}

std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context) {
  std::string table = "| model | data | objective | paper | ours | difference | mixture | AIS | se | seeds |\n"
                      "|---|---|---|---|---|---|---|---|---|---|\n";
  std::string csv = "model,data,objective,paper," + std::string(csv_columns);
  std::map<std::string, std::string> binarizations;
  for (const Table1Row& row : rows) {
    const CellFigures figures = figures_of(row.cell, context);
    const std::string why = remark(row.cell, figures, context);
    const bool any = figures.best.count() > 0;
    table += fmt::format("| {} | {} | {} | {:.2f} | {} | {} | {} | {} | {} | {} |\n", row.model, row.data, row.objective,
                         row.paper, any ? mean_and_sd(figures.best, 2) : why,
                         any ? fmt::format("{:+.2f}", figures.best.mean() - row.paper) : "—",
                         mean_and_sd(figures.mixture, 2), mean_and_sd(figures.ais, 2),
                         figures.se.count() > 0 ? fmt::format("{:.2f}", figures.se.mean()) : "—",
                         any && !why.empty() ? why : std::to_string(figures.seeds.size()));
    csv += csv_of(row.cell, figures, fmt::format("{},{},{},{:.2f}", row.model, row.data, row.objective, row.paper));
    binarizations.emplace(row.data, binarization_text(figures.seeds, row.data));
  }
  std::string text = fmt::format("# Table 1: average test log-likelihood, scale {}\n\n{}\n{}\n{}.\n", context.scale, table,
                                 columns_text, evaluation_text(rows.front().cell));
  for (const auto& [data, sentence] : binarizations) text += sentence;
  text += missing_text(context);
  write_file(context.folder / "table1.csv", csv);
  write_report(context, "table1.md", text);
  return text;
}

std::string report_fig2(const std::vector<Fig2Point>& points, const ReportContext& context) {
  std::string table = "| data | t | paper | ours | difference | mixture | AIS | se | seeds |\n|---|---|---|---|---|---|---|---|---|\n";
  std::string csv = "data,t," + std::string(csv_columns);
  std::map<std::string, std::string> curves, levels;  // data → rows for gnuplot: t, mean, sd
  for (const Fig2Point& point : points) {
    const CellFigures figures = figures_of(point.cell, context);
    const std::string why = remark(point.cell, figures, context);
    const bool any = figures.best.count() > 0;
    const std::string t = point.steps ? std::to_string(*point.steps) : "kl";
    table += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", point.data, t,
                         point.paper ? fmt::format("{:.2f}", *point.paper) : "(picture)",
                         any ? mean_and_sd(figures.best, 2) : why,
                         any && point.paper ? fmt::format("{:+.2f}", figures.best.mean() - *point.paper) : "—",
                         mean_and_sd(figures.mixture, 2), mean_and_sd(figures.ais, 2),
                         figures.se.count() > 0 ? fmt::format("{:.2f}", figures.se.mean()) : "—",
                         any && !why.empty() ? why : std::to_string(figures.seeds.size()));
    csv += csv_of(point.cell, figures, fmt::format("{},{}", point.data, t));
    if (!any) continue;
    if (point.steps)
      curves[point.data] += fmt::format("{} {:.4f} {:.4f}\n", t, figures.best.mean(), figures.best.sd());
    else
      levels[point.data] = fmt::format("{:.4f}", figures.best.mean());
  }
  const std::filesystem::path folder = context.folder / "figures";
  std::filesystem::create_directories(folder);
  write_file(folder / "fig2.csv", csv);
  std::string script = "set multiplot layout 1,2\nset xlabel 't, HMC steps'\nset ylabel 'test log-likelihood'\nset key bottom right\n"
                       "set xrange [0:27]\n";
  bool drawable = false;
  for (const auto& [data, rows] : curves) {
    drawable = true;
    script += fmt::format("${} << EOD\n{}EOD\nset title 'VAE, {}'\nplot ${} using 1:2:3 with yerrorlines lw 2 lc '#c8201e' "
                          "title 'VCD'", data, rows, data, data);
    if (levels.contains(data)) script += fmt::format(", {} lw 2 dt 2 lc '#1f5fbf' title 'KL'", levels[data]);
    script += "\n";
  }
  script += "unset multiplot\n";
  std::string text = fmt::format("# Figure 2: the VAE's test log-likelihood against t, scale {}\n\n{}\n{}\n{}.\n",
                                 context.scale, table, columns_text, evaluation_text(points.front().cell));
  text += missing_text(context);
  if (drawable && draw({"fig2", 1100, 450, script}, folder)) text += "Picture: figures/fig2.svg\n";
  write_report(context, "fig2.md", text);
  return text;
}

}  // namespace hone
