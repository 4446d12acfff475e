#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/report/gnuplot.hpp"
#include "app/report/run_record.hpp"

namespace hone {

// A figure of a fit that is still to be drawn. Its data are in the folder already.
struct FigurePlan {
  Figure figure;
  std::string alternative, caption;
};

// Ranks of the refined draws of some parameters, by groups of chains; nothing if there are fewer than two chains.
std::optional<FigurePlan> plan_ranks(const RunRecord& run, const CsvTable& draws, const std::vector<std::string>& names,
                                     const std::filesystem::path& folder);

// How far the chains have moved from where they started, against t; nothing if summary.json does not say.
std::optional<FigurePlan> plan_memory(const RunRecord& run, const std::filesystem::path& folder);

// How far means moved in each round of the chains, against t; nothing if summary.json does not say or there was one
// round.
std::optional<FigurePlan> plan_drift(const RunRecord& run, const std::filesystem::path& folder);

// The data and what the model predicts for them, where it has predictions (y_rep) and the data are still there.
std::optional<FigurePlan> plan_predictions(RunRecord& run, const std::filesystem::path& folder);

}  // namespace hone
