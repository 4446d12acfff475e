#pragma once

#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// Runs that are shown as one: a single run, or several that differ only in their seeds.
struct RunGroup {
  std::string label, colour;  // "#rrggbb"
  std::vector<RunRecord*> runs;

  const RunRecord& first() const { return *runs.front(); }
};

// Runs of one kind on one problem (a toy's target; a model and its data), which can be compared.
struct Section {
  RunKind kind;
  std::string problem;
  std::vector<RunGroup> groups;

  std::vector<const RunRecord*> runs() const;
};

// Groups the runs, in their order. Up to eight runs of a section get one group each; if there are more, runs that
// differ only in their seeds share a group.
std::vector<Section> sections_of(std::vector<RunRecord>& runs);

// What was fitted, how, and the results: one row per fact, one column per group, with headers. For a group of several
// runs, numbers are means ± standard deviations over them. Empty rows are left out.
std::vector<std::vector<std::string>> facts_table(const Section& section);

// Test log-likelihoods and the paper's Table 1: one row per run that is one of its cells; empty if there is none.
std::vector<std::vector<std::string>> paper_rows(const Section& section);

// Settings that differ between the groups, one row per key; and "key = value" for those that are the same in all.
struct SettingsTable {
  std::vector<std::vector<std::string>> different;  // with headers; empty if none differs
  std::vector<std::pair<std::string, std::string>> common;
};
SettingsTable settings_table(const Section& section);

}  // namespace hone
