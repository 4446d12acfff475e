#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hone {

// One run's values against its iterations. Points that are NaN are left out; an empty `se` means that none is known.
struct CurveLine {
  std::string label, colour;  // "#rrggbb"
  std::vector<double> x, y, se;
  int mark = 7;  // gnuplot's point type, where values are marks: a disc
};

enum class CurveStyle {
  curve,  // raw values thin, with a band of ± one standard error where it is known, and their moving average thick
  marks,  // few values: points with error bars, joined
};

// A figure of curves over iterations, NAME.csv and NAME.gp in a folder as `draw` makes it.
struct CurveFigure {
  std::string name, title;
  std::vector<CurveLine> lines;
  CurveStyle style = CurveStyle::curve;
  std::optional<double> reference = {};  // a dashed level …
  std::string reference_label = {};      // … and what it is
};
bool draw_curves(const CurveFigure& figure, const std::filesystem::path& folder);

// Rows that a moving average is over: about a twentieth of them, odd; 1, that is no smoothing, below 20.
int smoothing_window(std::size_t rows);

// The mean over `window` (odd) neighbours, fewer at the ends, and of those that are finite; NaN where none is.
std::vector<double> moving_average(std::span<const double> values, int window);

// What the y axis shows: of long lines not the first twentieth, where a fit comes from far away, nor what lies more
// than half as far again from the middle 90 % of the values. Finite and not empty.
struct AxisInterval {
  double low, high;
};
AxisInterval visible_interval(const CurveFigure& figure);

// Values of one sign that differ by more than a factor of a hundred are shown on a logarithmic axis, negative ones by
// −log(−y).
enum class AxisScale { linear, logarithmic, negative_logarithmic };
AxisScale axis_scale(const AxisInterval& y, CurveStyle style);

}  // namespace hone
