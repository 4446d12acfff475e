#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "app/report/csv_table.hpp"
#include "app/run/json.hpp"
#include "hone/base/statistics.hpp"

namespace hone {

enum class RunKind { toy, train, fit };

// The content of a run folder, as far as it can be read. If the run was killed, is still running, or was written by
// another version, `faults` says what is missing.
struct RunRecord {
  std::filesystem::path folder;
  RunKind kind = RunKind::toy;
  std::vector<std::pair<std::string, std::string>> config;  // key → value as TOML writes it, in the order of the file
  Json summary = Json::object();
  CsvTable metrics;      // empty if there is none, as for a fit
  CsvTable evaluations;  // test_log_likelihood.csv
  CsvTable validations;  // validation_log_likelihood.csv
  std::vector<std::string> faults;

  std::string name() const;
  std::string setting(std::string_view key) const;  // without quotes; empty if config.toml does not have it

  // Entries of summary.json by their path; NaN or an empty text if an entry is missing or of another type.
  double number(std::initializer_list<std::string_view> path) const;
  std::string text(std::initializer_list<std::string_view> path) const;
  Estimate estimate(std::string_view key) const { return {number({key, "mean"}), number({key, "se"})}; }
  const Json* find(std::initializer_list<std::string_view> path) const;  // null if there is none

  // From summary.json, or else from the last row of metrics.csv, and from config.toml; NaN if neither has it.
  double iterations_made() const;
  double iterations_asked() const;
  bool stopped_early() const;  // because validation data said so
};

// A number in a JSON object; NaN if it is missing, or if this is not an object.
double number_in(const Json& object, std::string_view key);

// Throws InputError with the reason if nothing can be reported about the folder.
RunRecord read_run(const std::filesystem::path& folder);

// The runs that an argument names: a run folder itself, those of hone train --seeds in a folder, or the cells of an
// experiment's folder (hone reproduce) that are runs.
std::vector<std::filesystem::path> runs_under(const std::filesystem::path& folder);

}  // namespace hone
