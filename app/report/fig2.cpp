#include <fmt/format.h>

#include <algorithm>

#include "app/report/gnuplot.hpp"
#include "app/report/table1.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

// The points of one data set.
struct Panel {
  std::string data;
  std::map<int, Moments> by_steps;
  Moments kl;
};

std::string script_of(const std::vector<Panel>& panels) {
  std::string script = fmt::format(
      "set multiplot layout 1,{}\nset xlabel 't, HMC steps'\nset ylabel 'test log-likelihood'\n"
      "set key below center horizontal height 0.7\nset xrange [0:27]\n",
      panels.size());
  for (const Panel& panel : panels) {
    script += "$points << EOD\n";
    for (const auto& [steps, results] : panel.by_steps)
      script += fmt::format("{} {:.4f} {:.4f}\n", steps, results.mean(), results.sd());
    script +=
        fmt::format("EOD\nset title 'VAE, {}'\nplot $points using 1:2:3 with yerrorlines lw 2 lc '#c8201e' title 'VCD'",
                    title_of(panel.data));
    if (panel.kl.count() > 0) script += fmt::format(", {:.4f} lw 2 dt 2 lc '#1f5fbf' title 'KL'", panel.kl.mean());
    script += "\n";
  }
  return script + "unset multiplot\n";
}

// The paper's two statements about the figure.
std::string sentence(const Panel& panel) {
  if (panel.by_steps.size() < 2) return "";
  const auto& [least, first] = *panel.by_steps.begin();
  const auto& [most, last] = *panel.by_steps.rbegin();
  std::string text =
      fmt::format("{}: from t = {} to t = {} the log-likelihood changes by {:+.2f} (the paper: it improves)",
                  panel.data, least, most, last.mean() - first.mean());
  if (panel.kl.count() > 0)
    text += fmt::format("; t = {} lies {:+.2f} from KL (the paper: above it)", least, first.mean() - panel.kl.mean());
  return text + ".\n";
}

}  // namespace

std::string report_fig2(const std::vector<Fig2Point>& points, const ReportContext& context) {
  std::string table = fmt::format("| data | t | paper | {}\n|---|---|---|---|---|---|---|---|---|\n", result_headings);
  std::string csv = fmt::format("data,t,{}\n", result_line_columns);
  std::vector<Panel> panels;  // in the order of the points
  for (const Fig2Point& point : points) {
    const CellResults results = results_of(point.cell, context);
    const std::string t = point.steps ? std::to_string(*point.steps) : "kl";
    table += fmt::format("| {} | {} | {} | {}\n", point.data, t,
                         point.paper ? fmt::format("{:.2f}", *point.paper) : "(picture)",
                         result_columns(point.cell, results, point.paper, context));
    csv += result_lines(point.cell, results, fmt::format("{},{}", point.data, t));
    if (panels.empty() || panels.back().data != point.data) panels.push_back({point.data, {}, {}});
    if (results.seeds.empty()) continue;
    (point.steps ? panels.back().by_steps[*point.steps] : panels.back().kl) = results.best;
  }
  const std::filesystem::path folder = context.folder / "figures";
  std::filesystem::create_directories(folder);
  write_file(folder / "fig2.csv", csv);
  std::string text = fmt::format("# Figure 2: the VAE's test log-likelihood against t, scale {}\n\n{}\n{}\n{}",
                                 context.scale, table, result_headings_text, cells_text(points.front().cell));
  for (const Panel& panel : panels) text += sentence(panel);
  text += missing_text(context);
  std::erase_if(panels, [](const Panel& panel) { return panel.by_steps.empty(); });
  if (!panels.empty() && draw({.name = "fig2", .width = 1100, .height = 450, .script = script_of(panels)}, folder))
    text += "Picture: figures/fig2.svg\n";
  write_report(context, "fig2.md", text);
  return text;
}

}  // namespace hone
