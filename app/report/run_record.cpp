#include "app/report/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/run/posterior_run.hpp"
#include "app/run/provenance.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/toml.hpp"
#include "app/run/toy.hpp"
#include "app/run/train_config.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

void flatten(const toml::table& table, const std::string& prefix,
             std::vector<std::pair<std::string, std::string>>& out) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;  // toml++ sorts them by key
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::ranges::stable_sort(entries, {}, [](const auto& entry) { return entry.second->source().begin.line; });
  for (const auto& [key, node] : entries) {
    const std::string name = prefix + std::string(key->str());
    if (const auto* inner = node->as_table()) {
      flatten(*inner, name + ".", out);
      continue;
    }
    std::ostringstream text;
    if (const auto real = node->as_floating_point())
      text << fmt::format("{}", real->get());  // the shortest form
    else
      node->visit([&](const auto& value) { text << value; });
    out.emplace_back(name, text.str());
  }
}

void read_config(RunRecord& run) {
  const fs::path path = run.folder / "config.toml";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    run.faults.push_back("config.toml: missing");
    return;
  }
  try {
    flatten(parse_toml(read_file(path), path.string()), "", run.config);
  } catch (const toml::parse_error& error) {
    run.faults.push_back(fmt::format("config.toml, line {}: {}", error.source().begin.line, error.description()));
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
}

void read_summary(RunRecord& run) {
  const fs::path path = run.folder / "summary.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    run.faults.push_back("summary.json is missing: the run has not ended, or was killed");
    return;
  }
  try {
    Json json = parse_json(read_file(path));
    if (json.is_object())
      run.summary = std::move(json);
    else
      run.faults.push_back("summary.json: not a JSON object; it may be truncated");
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
}

CsvTable read_rows(RunRecord& run, const std::string& name) {
  std::error_code ignored;
  if (!fs::exists(run.folder / name, ignored)) return {};
  try {
    CsvTable table = read_csv_table(run.folder / name);
    run.faults.insert(run.faults.end(), table.faults.begin(), table.faults.end());
    if (table.column("iteration")) return table;
    run.faults.push_back(name + ": has no column 'iteration'");
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
  return {};
}

std::string listed_runs(const fs::path& folder) {
  constexpr std::size_t most = 3;
  std::vector<std::string> runs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (fs::exists(entry.path() / "config.toml", ignored)) runs.push_back(entry.path().string());
  std::ranges::sort(runs);
  const std::size_t shown = std::min(most, runs.size());
  return join({runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(shown)}) +
         (runs.size() > most ? fmt::format(" and {} more", runs.size() - most) : "");
}

// What a folder without the files of a run is.
std::string what_is(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  if (fs::is_empty(folder, ignored)) return "is empty; expected the folder of a run";
  if (const std::string runs = listed_runs(folder); !runs.empty())
    return "is no run, but holds runs: give these, " + runs;
  if (has("check.json")) return "holds the result of hone check; only runs of hone toy, train and fit have a report";
  if (has("encoder.onnx") || has("hone_model.py") || has("model.npz"))
    return "holds an exported model; give the folder of its run";
  return "is no run: it has neither config.toml nor summary.json";
}

// Why nothing is known of a run's kind.
std::string why_unknown(const RunRecord& run) {
  std::error_code ignored;
  const bool config = fs::exists(run.folder / "config.toml", ignored);
  const bool summary = fs::exists(run.folder / "summary.json", ignored);
  if (!config && !summary) return what_is(run.folder);
  if (!run.setting("tolerance_mean").empty() && !summary)
    return "a run of hone fit that has not ended, or was killed: summary.json is missing";
  std::string why = "not a run of hone toy, train or fit";
  for (const std::string& fault : run.faults)
    if (!fault.starts_with("config.toml: missing") && !fault.starts_with("summary.json is missing"))
      why += "; " + fault;
  if (config && run.config.empty() && run.faults.size() == (summary ? 0u : 1u)) why += "; config.toml is empty";
  return why;
}

RunKind kind_of(const RunRecord& run) {
  const Json& s = run.summary;
  if (s.contains("verdict") && s.contains("checks")) return RunKind::fit;
  if (s.contains("target") && s.contains("parameters")) return RunKind::toy;
  if (s.contains("model") && s.contains("iterations")) return RunKind::train;
  if (!run.setting("target").empty()) return RunKind::toy;
  const bool fit = !run.setting("tolerance_mean").empty();  // of which only summary.json can be shown
  if (!run.setting("model").empty() && !fit) return RunKind::train;
  throw InputError(fmt::format("{}: {}", run.folder.string(), why_unknown(run)));
}

// This version's table of settings, which it reads a run's config.toml with.
std::vector<std::string> known_keys(RunKind kind) {
  ToyConfig toy;
  TrainRunConfig train;
  PosteriorRunConfig fit;
  Settings settings = kind == RunKind::toy     ? toy_settings(toy)
                      : kind == RunKind::train ? train_settings(train)
                                               : posterior_run_settings(fit);
  if (kind == RunKind::fit) add_model_keys(settings, fit);
  std::vector<std::string> keys;
  for (const auto& entry : settings.entries()) keys.push_back(entry.key);
  return keys;
}

void check_version(RunRecord& run) {
  const std::string version = run.text({"hone_version"});
  if (!version.empty() && version != hone_version())
    run.faults.push_back(fmt::format("written by hone {}; this is hone {}, which leaves out what it does not know",
                                     version, hone_version()));
  const std::vector<std::string> known = known_keys(run.kind);
  for (const auto& [key, value] : run.config)
    if (std::ranges::find(known, key) == known.end())
      run.faults.push_back(fmt::format("config.toml: hone {} does not know the key '{}': another version wrote it",
                                       hone_version(), key));
}

// Whether a cell of an experiment is a run; some only measure times, or judge other cells.
bool is_run(const fs::path& cell) {
  std::error_code ignored;
  return fs::exists(cell / "metrics.csv", ignored) || fs::exists(cell / "checkpoint.safetensors", ignored);
}

}  // namespace

std::string RunRecord::name() const {
  const fs::path plain = folder.lexically_normal();
  const fs::path last = plain.has_filename() ? plain.filename() : plain.parent_path().filename();
  return last.empty() || last == "." || last == ".."
             ? fs::absolute(plain).lexically_normal().parent_path().filename().string()
             : last.string();
}

std::string RunRecord::setting(std::string_view key) const {
  const auto found = std::ranges::find(config, key, &std::pair<std::string, std::string>::first);
  if (found == config.end()) return "";
  const std::string& text = found->second;
  const bool quoted = text.size() > 1 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

const Json* RunRecord::find(std::initializer_list<std::string_view> path) const {
  const Json* at = &summary;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

double RunRecord::iterations_made() const {
  const double made = number({"iterations"});
  const auto* rows = metrics.column("iteration");
  return std::isnan(made) && rows && !rows->empty() ? rows->back() : made;
}

double RunRecord::iterations_asked() const {
  const std::string asked = setting("iterations");
  return asked.empty() ? std::nan("") : std::strtod(asked.c_str(), nullptr);
}

bool RunRecord::stopped_early() const {
  const Json* said = find({"stopped_early"});
  return said && said->is_boolean() && said->get<bool>();
}

double RunRecord::number(std::initializer_list<std::string_view> path) const {
  const Json* found = find(path);
  return found && found->is_number() ? found->get<double>() : std::nan("");
}

std::string RunRecord::text(std::initializer_list<std::string_view> path) const {
  const Json* found = find(path);
  return found && found->is_string() ? found->get<std::string>() : "";
}

double number_in(const Json& object, std::string_view key) {
  if (!object.is_object()) return std::nan("");
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

RunRecord read_run(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) throw InputError(fmt::format("{}: no such folder", folder.string()));
  if (!fs::is_directory(folder, ignored))
    throw InputError(fmt::format("{}: is a file; expected the folder of a run", folder.string()));
  RunRecord run;
  run.folder = folder;
  read_config(run);
  read_summary(run);
  run.metrics = read_rows(run, "metrics.csv");
  run.evaluations = read_rows(run, "test_log_likelihood.csv");
  run.validations = read_rows(run, "validation_log_likelihood.csv");
  run.kind = kind_of(run);
  if (run.kind != RunKind::fit && run.metrics.rows() == 0)
    run.faults.push_back("metrics.csv: missing, or without rows");
  check_version(run);
  return run;
}

std::vector<fs::path> runs_under(const fs::path& folder) {
  std::error_code ignored;
  if (std::vector<fs::path> seeds = seed_folders(folder); !seeds.empty()) return seeds;
  const fs::path cells = folder / "cells";
  if (!fs::is_directory(cells, ignored) || fs::exists(folder / "summary.json", ignored)) return {folder};
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(cells, ignored))
    if (entry.is_directory(ignored) && entry.path().extension() != ".partial" && is_run(entry.path()))
      runs.push_back(entry.path());
  std::ranges::sort(runs);
  if (runs.empty()) runs.push_back(folder);
  return runs;
}

}  // namespace hone
