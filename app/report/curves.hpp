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
  int mark = 7;  // gnuplot's point type if values are marks: a disc
};

// A point of a line that means something: a sign around or over it. Spots of one label share an entry of the key.
struct CurveSpot {
  double x, y;
  std::string label, colour;
  int sign;  // gnuplot's point type
};

enum class CurveStyle {
  curve,  // thin: raw values, with a band of ± one standard error if known; thick: their moving average
  marks,  // few values: points with error bars, joined
};

// A figure of curves over iterations, NAME.csv and NAME.gp in a folder, as `draw` writes them.
struct CurveFigure {
  std::string name, title;
  std::vector<CurveLine> lines;
  CurveStyle style = CurveStyle::curve;
  std::optional<double> reference = {};  // a dashed level …
  std::string reference_label = {};      // … and what it is
  std::vector<CurveSpot> spots = {};
};
bool draw_curves(const CurveFigure& figure, const std::filesystem::path& folder);

// Window of the moving average: about a twentieth of the rows, odd; 1, that is no smoothing, below 20 rows.
int smoothing_window(std::size_t rows);

// The mean of the finite values among `window` (odd) neighbours, fewer at the ends; NaN if none is finite.
std::vector<double> moving_average(std::span<const double> values, int window);

// The range of the y axis. It leaves out the first twentieth of long lines, when a fit is still far away, and values
// that lie outside the middle 90 % by more than half of its width. Finite and not empty.
struct AxisInterval {
  double low, high;
};
AxisInterval visible_interval(const CurveFigure& figure);

// Values of one sign that differ by more than a factor of a hundred are shown on a logarithmic axis, negative ones by
// −log(−y).
enum class AxisScale { linear, logarithmic, negative_logarithmic };
AxisScale axis_scale(const AxisInterval& y, CurveStyle style);

}  // namespace hone
