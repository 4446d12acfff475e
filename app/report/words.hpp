#pragma once

#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// How the ELBO moved at the end of a run: the mean over the last fifth of the rows less that over the fifth before,
// with the standard error that the rows' own give. NaN below ten rows.
Estimate elbo_trend(const CsvTable& metrics);

// What became of a run, in two sentences.
std::string verdict_of(const RunRecord& run);

// The same for runs that differ in their seeds alone: means and standard deviations over them.
std::string verdict_of(const std::vector<const RunRecord*>& seeds);

// How runs of one kind on one problem compare, in one or two sentences; empty where nothing can be compared.
std::string comparison_of(const std::vector<const RunRecord*>& runs);

std::string numbers_text(const Json* list);       // "1.5, −2"; empty where it is no list of numbers
std::string last_vcd_text(const RunRecord& run);  // of a fit, at the most refinement steps: "0.67 ± 0.06 at t = 16"
std::string kind_text(RunKind kind);              // "hone toy", …

}  // namespace hone
