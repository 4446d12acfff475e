#pragma once

#include <string>
#include <vector>

#include "app/run/json.hpp"

namespace hone {

// The table of a fit, from its summary.json: parameters first, then what the model computes from them. A variable
// with many values, a log-likelihood or a prediction has one line with the number of its values, unless the user asks
// for them.
struct FitTable {
  struct Column {
    std::string key, title;  // in summary.json, and above the column
  };
  struct Line {
    std::string name;                // or, without cells, the whole line
    std::vector<std::string> cells;  // one per column; none: a line that stands for several values
    bool parameter = true;           // or computed from parameters
  };
  std::vector<Column> columns;
  std::vector<Line> lines;
};

struct ShownValues {
  std::vector<std::string> names =
      {};                          // variables ("theta") or single values ("theta.2", "theta[2]"); none: the usual ones
  std::string hint = "--show {}";  // how a user asks for the variable {}
  bool only_q = false;             // nothing is refined yet
  std::string whose = "q";         // whose values stand left of the bar
};

// Throws InputError where a name is not one of the fit's.
FitTable fit_table(const Json& summary, const ShownValues& show = {});

// Refuses names that are not among the fit's values, as fit_table does.
void check_shown(const std::vector<std::string>& values, const ShownValues& show);

// The table in lines of at most `width` characters: columns that do not fit are left out, first the quantiles.
std::string text_of(const FitTable& table, int width);

}  // namespace hone
