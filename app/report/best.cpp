#include "app/report/best.hpp"

#include <fmt/format.h>

#include "hone/base/file.hpp"

namespace hone {

std::string report_best(const std::vector<BestRow>& rows, const ReportContext& context) {
  std::string table =
      "| model | data | t | the paper's best | ours, best of three | annealed | q's own draws | gap | seconds per run "
      "| seeds |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  std::string csv = fmt::format("model,data,t,paper,q,{}\n", result_line_columns);
  for (const BestRow& row : rows) {
    const CellResults results = results_of(row.cell, context);
    const int steps = row.cell.config.train.refine.steps;
    Moments q, gap, seconds;
    for (const auto& [seed, f] : results.seeds) {
      q.add(f.q);
      if (f.ais) gap.add(f.ais->mean - f.q);
      seconds.add(f.seconds / f.side_by_side);
      CellResults one;
      one.seeds.emplace_back(seed, f);
      csv += result_lines(row.cell, one,
                          fmt::format("{},{},{},{:.2f},{:.4f}", row.model, row.data, steps, row.paper, f.q));
    }
    table += fmt::format("| {} | {} | {} | {:.2f} | {} | {} | {} | {} | {} | {} |\n", row.model, row.data, steps,
                         row.paper, mean_and_sd(results.best, 2), mean_and_sd(results.ais, 2), mean_and_sd(q, 2),
                         mean_and_sd(gap, 2), mean_and_sd(seconds, 1), seeds_text(row.cell, results, context));
  }
  std::string text = fmt::format(
      "# The best recipe, scale {}\n\n{}\nAverage test log-likelihood in nats, mean ± standard deviation over seeds. "
      "*best of three*: the paper's measure. *annealed*: annealed importance sampling, which needs no proposal. *q's "
      "own draws*: importance sampling from q "
      "widened 1.2 times, the first of the paper's proposals. *gap*: what q's own draws miss.\n{}",
      context.scale, table, cells_text(rows.front().cell));
  text += missing_text(context);
  write_file(context.folder / "best.csv", csv);
  write_report(context, "best.md", text);
  return text;
}

}  // namespace hone
