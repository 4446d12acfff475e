#pragma once

#include <string>
#include <vector>

#include "app/report/page.hpp"
#include "app/report/run_record.hpp"

namespace hone {

// The change of the ELBO at the end of a run: the mean over the last fifth of the rows minus that over the fifth
// before, with a standard error from the rows' own. NaN below ten rows.
Estimate elbo_trend(const CsvTable& metrics);

// The outcome of a run, in two sentences.
std::string verdict_of(const RunRecord& run);

// The same for runs that differ only in their seeds: means and standard deviations over them.
std::string verdict_of(const std::vector<const RunRecord*>& seeds);

// The outcome in a word, and whether it is good.
struct Standing {
  Page::Badge badge;
  std::string text;
};
Standing standing_of(const RunRecord& run);

// How runs of one kind on one problem compare, in one or two sentences; empty if nothing can be compared.
std::string comparison_of(const std::vector<const RunRecord*>& runs);

std::string numbers_text(const Json* list);  // "1.5, −2"; empty if it is not a list of numbers
// The VCD of a fit: the limit, on which the verdict rests; without it, the value at the largest t.
std::string vcd_text(const RunRecord& run);
std::string kind_text(RunKind kind);  // "hone toy", …

}  // namespace hone
