#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// A figure that was drawn: NAME.svg in the folder of the run's figures, and its words.
struct DrawnFigure {
  std::string name, alternative, caption;
};

// The figures of a `hone fit`, as far as its files allow: marginals of q and of the refined draws for the parameters on
// which they disagree most, pairs of the parameters that weigh most in the worst directions, and the VCD against t.
// Their data and scripts are left in `folder`. What is missing is added to the run's faults. `gnuplot` becomes false
// where it is not installed.
std::vector<DrawnFigure> draw_fit_figures(RunRecord& run, const std::filesystem::path& folder, bool& gnuplot);

// Relative frequencies, as a density, of values in `bins` equal parts of [low, high]; values outside are left out but
// counted in the whole.
std::vector<double> histogram(const std::vector<double>& values, double low, double high, int bins);

}  // namespace hone
