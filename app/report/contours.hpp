#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/toy.hpp"

namespace hone {

// A picture of a toy target and of fitted q's. Contours are highest-density regions, the smallest regions that hold a
// given share of the probability, so a line means the same in every panel and for every density.
struct ContourPanel {
  std::string name;  // of its CSV file
  std::string title;
  std::vector<std::filesystem::path> runs;  // toy runs on one target
  std::vector<std::string> labels = {};     // of the runs in the legend; empty: their objectives
  std::vector<std::string> colours = {};    // "#rrggbb", of the runs; empty: the objectives'
};

inline const std::vector<double> contour_shares = {0.5, 0.8, 0.95};

// Writes one CSV file per panel and the figure `name` into `folder`; false if gnuplot is not installed.
bool draw_contours(const std::string& name, const std::vector<ContourPanel>& panels,
                   const std::filesystem::path& folder);

// The density level above which a share of the mass of grid values lies.
double density_level(std::vector<double> density, double share);

}  // namespace hone
