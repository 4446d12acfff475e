#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/toy.hpp"

namespace hone {

// A picture of a toy target and of fitted q's: contours of highest-density regions, that is, the smallest regions that
// hold given shares of the probability, so that the same line means the same in every panel and for every density.
struct ContourPanel {
  std::string name;  // of its CSV file
  std::string title;
  std::vector<std::filesystem::path> runs;  // toy runs on one target
  std::vector<std::string> labels = {};     // of the runs in the legend; empty: their objectives
  std::vector<std::string> colours = {};    // "#rrggbb", likewise
};

inline const std::vector<double> contour_shares = {0.5, 0.8, 0.95};

// Writes a CSV file a panel and the figure `name` into `folder`; false where gnuplot is not installed.
bool draw_contours(const std::string& name, const std::vector<ContourPanel>& panels,
                   const std::filesystem::path& folder);

// The density level above which a share of the mass of grid values lies.
double density_level(std::vector<double> density, double share);

}  // namespace hone
