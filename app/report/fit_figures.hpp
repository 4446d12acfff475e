#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// A drawn figure: NAME.svg in the run's folder of figures, with its description and caption.
struct DrawnFigure {
  std::string name, alternative, caption;
};

// The figures of a `hone fit`, as far as its files allow: marginals of q and of the refined draws for the parameters on
// which they disagree most, pairs of the parameters with the largest weight in the worst directions, the VCD against t,
// and what chain_figures.hpp has. Their data and scripts stay in `folder`. Missing files are added to the run's faults.
// Sets `gnuplot` to false if it is not installed.
std::vector<DrawnFigure> draw_fit_figures(RunRecord& run, const std::filesystem::path& folder, bool& gnuplot);

// A histogram as a density: relative frequencies of the values in `bins` equal parts of [low, high]. Values outside
// have no bin but count in the total.
std::vector<double> histogram(const std::vector<double>& values, double low, double high, int bins);

}  // namespace hone
