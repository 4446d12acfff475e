#pragma once

#include <filesystem>
#include <string>

namespace hone {

// Reads the finished runs of Figure 1 under folder/cells; writes figures/fig1.svg and .png (seed 1), fig1.csv (the
// fitted parameters of every run) and fig1.md (means and spread over seeds, and one sentence per panel).
struct Fig1Report {
  std::string text;               // the text of fig1.md, for the terminal
  std::filesystem::path picture;  // empty if gnuplot is not installed
};
Fig1Report report_fig1(const std::filesystem::path& folder, int seeds);

}  // namespace hone
