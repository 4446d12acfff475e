#pragma once

#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// Runs that are shown as one: a run, or several that differ in their seeds alone.
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

// Runs in their order, put together. Up to eight runs of a section stand for themselves; of more, those that differ in
// their seeds alone make one group.
std::vector<Section> sections_of(std::vector<RunRecord>& runs);

// What was fitted and how, and what came out: a row a fact, a column a group, with headers. Numbers of a group of
// several runs are means ± standard deviations over them. Rows of which nobody knows anything are left out.
std::vector<std::vector<std::string>> facts_table(const Section& section);

// The test log-likelihoods beside Table 1 of the paper: a row a run that is one of its cells; empty where none is.
std::vector<std::vector<std::string>> paper_rows(const Section& section);

// Settings that differ between the groups, a row a key; and "key = value" of those that are the same in all.
struct SettingsTable {
  std::vector<std::vector<std::string>> different;  // with headers; empty where none differs
  std::vector<std::pair<std::string, std::string>> common;
};
SettingsTable settings_table(const Section& section);

}  // namespace hone
