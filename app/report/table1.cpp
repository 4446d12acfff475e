#include "app/report/table1.hpp"

#include <fmt/format.h>

#include "hone/base/file.hpp"

namespace hone {

std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context) {
  std::string table = fmt::format(
      "| model | data | objective | paper | {}\n|---|---|---|---|---|---|---|---|---|---|\n", result_headings);
  std::string csv = fmt::format("model,data,objective,paper,{}\n", result_line_columns);
  std::map<std::string, std::string> binarization;  // of a data set, in words
  for (const Table1Row& row : rows) {
    const CellResults results = results_of(row.cell, context);
    table += fmt::format("| {} | {} | {} | {:.2f} | {}\n", row.model, row.data, row.objective, row.paper,
                         result_columns(row.cell, results, row.paper, context));
    csv +=
        result_lines(row.cell, results, fmt::format("{},{},{},{:.2f}", row.model, row.data, row.objective, row.paper));
    for (const auto& [seed, f] : results.seeds) binarization[row.data] = f.binarization;
  }
  std::string text = fmt::format("# Table 1: average test log-likelihood, scale {}\n\n{}\n{}\n{}", context.scale, table,
                                 result_headings_text, cells_text(rows.front().cell));
  for (const auto& [data, how] : binarization) text += fmt::format("{}: {}.\n", data, how);
  text += missing_text(context);
  write_file(context.folder / "table1.csv", csv);
  write_report(context, "table1.md", text);
  return text;
}

}  // namespace hone
