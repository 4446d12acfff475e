#include "app/run/fit_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/run/draws.hpp"
#include "app/run/draws_file.hpp"
#include "app/run/fit_groups.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

constexpr std::size_t most_values = 20;  // of a variable that is shown unasked
constexpr int number_width = 7;

// At most seven characters: four digits, or as many as fit.
std::string cell_of(const Json& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end() || found->is_null()) return "-";
  if (!found->is_number()) return found->is_string() && *found == "-Infinity" ? "-inf" : "inf";
  const double x = *found;
  if (key == "ess" || key == "ess_tail") return fmt::format("{:.0f}", x);
  if (key == "rhat") return fmt::format("{:.3f}", x);
  std::string text;
  for (int digits = 4; digits > 0; --digits)
    if (text = fmt::format("{:.{}g}", x, digits); text.size() <= number_width) break;
  return text;
}

// "log_lik[1..500]: 500 values, --show log_lik"
std::string count_line(const NamedVariable& variable, const std::string& hint) {
  std::string indices;
  for (const std::size_t length : variable.dims)
    indices += fmt::format("{}{}", indices.empty() ? "" : ",", length > 1 ? fmt::format("1..{}", length) : "1");
  return fmt::format("{}[{}]: {} values, {}", variable.name, indices, variable.entries.size(),
                     fmt::format(fmt::runtime(hint), variable.name));
}

bool is_long(const NamedVariable& variable, const std::set<std::string>& aside) {
  return variable.entries.size() > 1 && (variable.entries.size() > most_values || aside.contains(variable.name));
}

// Names of short variables that are hidden nevertheless.
std::set<std::string> aside_in(const Json& summary) {
  std::set<std::string> aside;
  const auto groups = summary.find("groups");
  if (groups == summary.end() || !groups->is_object()) return aside;
  for (const char* group : {"log_likelihood", "posterior_predictive"})
    if (const auto list = groups->find(group); list != groups->end() && list->is_array())
      for (const Json& name : *list)
        if (name.is_string()) aside.insert(name.get<std::string>());
  return aside;
}

// The values that are asked for, as indices; each once.
std::vector<std::size_t> asked_for(const std::vector<std::string>& values, const ShownValues& show) {
  const std::vector<NamedVariable> variables = group_names(values);
  std::vector<std::size_t> chosen;
  for (const std::string& given : show.names) {
    const std::string name = stan_name(given);
    std::vector<std::size_t> own;
    for (const NamedVariable& variable : variables)
      if (variable.name == name) own = variable.entries;
    if (const auto value = std::ranges::find(values, name); own.empty() && value != values.end())
      own = {static_cast<std::size_t>(value - values.begin())};
    if (own.empty()) {
      std::vector<std::string> known;
      for (const NamedVariable& variable : variables) known.push_back(variable.name);
      throw InputError(fmt::format("{}: the model has no value of this name{}",
                                   fmt::format(fmt::runtime(show.hint), given), did_you_mean(name, known)));
    }
    for (const std::size_t index : own)
      if (std::ranges::find(chosen, index) == chosen.end()) chosen.push_back(index);
  }
  return chosen;
}

// Positions of the columns that remain without those in `left_out`.
std::vector<std::size_t> columns_without(const FitTable& table, const std::set<std::string>& left_out) {
  std::vector<std::size_t> kept;
  for (std::size_t k = 0; k < table.columns.size(); ++k)
    if (!left_out.contains(table.columns[k].key)) kept.push_back(k);
  return kept;
}

bool is_of_q(const FitTable::Column& column) { return column.key.starts_with("q_"); }
int width_for(const FitTable::Column& column) {
  return column.key == "ess" ? 6 : column.key == "rhat" ? 6 : std::max(number_width, width_of(column.title)) + 1;
}

std::string line_of(const FitTable& table, const std::vector<std::size_t>& kept, const std::string& name,
                    int name_width, const std::vector<std::string>& cells) {
  std::string text = name + std::string(static_cast<std::size_t>(std::max(0, name_width - width_of(name))), ' ');
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const FitTable::Column& column = table.columns[kept[i]];
    if (i > 0 && is_of_q(table.columns[kept[i - 1]]) && !is_of_q(column)) text += " |";
    text += fmt::format("{:>{}}", cells[kept[i]], width_for(column));
  }
  return text + "\n";
}

}  // namespace

void check_shown(const std::vector<std::string>& values, const ShownValues& show) { asked_for(values, show); }

FitTable fit_table(const Json& summary, const ShownValues& show) {
  FitTable table;
  table.columns = {{"q_mean", show.whose + " mean"},
                   {"q_sd", show.whose + " sd"},
                   {"mean", "mean"},
                   {"sd", "sd"},
                   {"mcse", "mcse"},
                   {"q05", "5%"},
                   {"q50", "50%"},
                   {"q95", "95%"},
                   {"ess", "ESS"},
                   {"rhat", "R-hat"}};
  if (show.only_q) table.columns.resize(2);
  const auto parameters = summary.find("parameters");
  if (parameters == summary.end() || !parameters->is_object())
    throw InputError("summary.json: has no 'parameters'; expected the summary of a 'hone fit'");
  std::vector<std::string> names;
  for (const auto& [name, values] : parameters->items()) names.push_back(name);
  const auto count = summary.find("parameter_count");
  const std::size_t own =
      count != summary.end() && count->is_number_unsigned() ? count->get<std::size_t>() : names.size();
  const auto add = [&](std::size_t index) {
    FitTable::Line line{names[index], {}, index < own};
    for (const auto& column : table.columns) line.cells.push_back(cell_of((*parameters)[names[index]], column.key));
    table.lines.push_back(std::move(line));
  };
  if (!show.names.empty()) {
    for (const std::size_t index : asked_for(names, show)) add(index);
    return table;
  }
  const std::set<std::string> aside = aside_in(summary);
  for (const NamedVariable& variable : group_names(names)) {
    if (is_long(variable, aside))
      table.lines.push_back({count_line(variable, show.hint), {}, variable.entries.front() < own});
    else
      for (const std::size_t index : variable.entries) add(index);
  }
  return table;
}

std::string text_of(const FitTable& table, int width) {
  int longest = 8;
  for (const FitTable::Line& line : table.lines)
    if (!line.cells.empty()) longest = std::max(longest, width_of(line.name));
  std::vector<std::size_t> kept;
  int name_width = longest;
  static const std::vector<std::set<std::string>> tries = {
      {}, {"q50"}, {"q05", "q50", "q95"}, {"q05", "q50", "q95", "q_mean", "q_sd"}};
  for (const std::set<std::string>& left_out : tries) {
    kept = columns_without(table, left_out);
    int numbers = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) numbers += width_for(table.columns[kept[i]]);
    if (is_of_q(table.columns[kept.front()]) && !is_of_q(table.columns[kept.back()])) numbers += 2;
    name_width = std::min(longest, width - numbers);
    if (name_width == longest) break;
  }
  name_width = std::max(name_width, 8);  // only very narrow terminals have no room for that
  std::vector<std::string> titles;
  for (const auto& column : table.columns) titles.push_back(column.title);
  std::string text = line_of(table, kept, "", name_width, titles);
  bool parameters = true;
  for (const FitTable::Line& line : table.lines) {
    if (parameters && !line.parameter && &line != &table.lines.front()) text += "\n";  // computed values stand apart
    parameters = line.parameter;
    if (line.cells.empty()) {
      text += wrapped("", line.name, width);
      continue;
    }
    text += line_of(table, kept, cut_to(line.name, name_width), name_width, line.cells);
  }
  return text;
}

}  // namespace hone
