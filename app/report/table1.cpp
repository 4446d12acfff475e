#include "app/report/table1.hpp"

#include <fmt/format.h>

#include "hone/base/file.hpp"

namespace hone {

std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context) {
  std::string table = fmt::format(
      "| model | data | objective | paper | {}\n|---|---|---|---|---|---|---|---|---|---|\n", figure_headings);
  std::string csv = fmt::format("model,data,objective,paper,{}\n", figure_line_columns);
  std::map<std::string, std::string> binarization;  // of a data set, in words
  for (const Table1Row& row : rows) {
    const CellFigures figures = figures_of(row.cell, context);
    table += fmt::format("| {} | {} | {} | {:.2f} | {}\n", row.model, row.data, row.objective, row.paper,
                         figure_columns(row.cell, figures, row.paper, context));
    csv +=
        figure_lines(row.cell, figures, fmt::format("{},{},{},{:.2f}", row.model, row.data, row.objective, row.paper));
    for (const auto& [seed, f] : figures.seeds) binarization[row.data] = f.binarization;
  }
  std::string text = fmt::format("# Table 1: average test log-likelihood, scale {}\n\n{}\n{}\n{}", context.scale, table,
                                 figure_headings_text, cells_text(rows.front().cell));
  for (const auto& [data, how] : binarization) text += fmt::format("{}: {}.\n", data, how);
  text += missing_text(context);
  write_file(context.folder / "table1.csv", csv);
  write_report(context, "table1.md", text);
  return text;
}

}  // namespace hone
