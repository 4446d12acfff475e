#include "app/report/paper_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/run/train_config.hpp"

namespace hone {
namespace {

// The engine is set, so that resolving the rest needs no device.
std::vector<std::pair<std::string, std::string>> paper_settings(const PaperCell& cell) {
  TrainRunConfig config = paper_run_config();
  Settings settings = train_settings(config);
  settings.set("model", cell.model, "paper");
  settings.set("data", cell.data, "paper");
  settings.set("objective", cell.objective, "paper");
  settings.set("engine", "cpu", "paper");
  resolve(config);
  std::vector<std::pair<std::string, std::string>> result;
  const std::set<std::string> of_vcd = {"score_bound", "schedule.alpha_from", "schedule.alpha_until"};
  for (const auto& [key, value] : identity_of(config))
    if (cell.objective == "vcd" || !of_vcd.contains(key)) result.emplace_back(key, settings.text(key));
  return result;
}

// Keys that define a run but may differ within a cell. How MNIST was binarized is reported elsewhere, because the
// setting alone does not say.
const std::set<std::string> free_settings = {"data", "data_seed", "binarization", "seed", "precision"};

}  // namespace

std::optional<PaperMatch> match_paper(const RunRecord& run) {
  if (run.kind != RunKind::train) return {};
  TrainRunConfig config = paper_run_config();  // runs of earlier versions lack keys, and were trained as the paper's
  Settings settings = train_settings(config);
  try {
    settings.read_file(run.folder / "config.toml");
  } catch (const InputError&) {
    return {};  // the report says elsewhere what is wrong
  }
  if (!config.likelihood) config.likelihood = config.train.model.density();  // the model's name says it
  const std::string data = settings.text("data") == "binarized-mnist" ? "mnist" : settings.text("data");
  const auto cell = std::ranges::find_if(paper_cells(), [&](const PaperCell& c) {
    return c.model == settings.text("model") && c.data == data && c.objective == settings.text("objective");
  });
  if (cell == paper_cells().end()) return {};
  PaperMatch match{&*cell, {}};
  for (const auto& [key, value] : paper_settings(*cell)) {
    const std::string own = settings.text(key);
    if (own != value && !own.empty() && !free_settings.contains(key))
      match.differences.push_back(fmt::format("{} {}, paper {}", key, own, value));
  }
  const std::string bits = run.text({"binarization"});
  if (data == "mnist" && bits.starts_with("binarized"))
    match.differences.push_back("MNIST " + bits + ", paper by fixed files");
  if (data == "fashion-mnist" && !bits.empty() && bits.find("threshold") == bits.npos)
    match.differences.push_back(bits + ", paper by the threshold one half");
  return match;
}

}  // namespace hone
