#include "app/report/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/gnuplot.hpp"
#include "app/report/text.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

// One block per line of the figure; gnuplot addresses it by its index.
std::string csv_of(const CurveFigure& figure) {
  std::string text = "# iteration,value,low,high,smoothed\n";
  for (const CurveLine& line : figure.lines) {
    const auto smooth = moving_average(line.y, smoothing_window(line.y.size()));
    text += fmt::format("# {}\n", gnuplot_text(line.label));
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const double se = line.se.empty() ? std::nan("") : line.se[i];
      text += fmt::format("{:.10g},{:.8g},{:.8g},{:.8g},{:.8g}\n", line.x[i], line.y[i], line.y[i] - se, line.y[i] + se,
                          smooth[i]);
    }
    text += "\n\n";
  }
  for (const CurveSpot& spot : figure.spots)
    text += fmt::format("# {}\n{:.10g},{:.8g}\n\n\n", gnuplot_text(spot.label), spot.x, spot.y);
  return text;
}

// The different labels of the key, in their order.
std::vector<std::string> labels_of(const CurveFigure& figure) {
  std::vector<std::string> labels;
  const auto add = [&](const std::string& label) {
    if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
  };
  if (figure.lines.size() > 1)
    for (const CurveLine& line : figure.lines) add(line.label);
  for (const CurveSpot& spot : figure.spots) add(spot.label);
  if (figure.reference) add(figure.reference_label);
  return labels;
}

double last_iteration(const CurveFigure& figure) {
  double last = 0;
  for (const CurveLine& line : figure.lines)
    for (const double x : line.x) last = std::max(last, x);
  return last;
}

// A transparent colour: "#AArrggbb"
std::string faint(const std::string& colour, const char* alpha) { return "#" + (alpha + colour.substr(1)); }

// A power of ten, times 1, 2 or 5, as a label.
std::string tick_label(double value) {
  if (std::abs(value) < 1e5 && std::abs(value) >= 1e-3) return number_text(value);
  const double exponent = std::floor(std::log10(std::abs(value)) + 1e-9),
               digit = std::abs(value) / std::pow(10, exponent);
  return fmt::format("{}{}10^{{{:.0f}}}", value < 0 ? "−" : "", digit > 1.5 ? fmt::format("{:.0f}×", digit) : "",
                     exponent);
}

// gnuplot commands for the y axis.
std::string axis_commands(const AxisInterval& y, AxisScale scale) {
  if (scale == AxisScale::linear) return fmt::format("set yrange [{:.8g}:{:.8g}]\n", y.low, y.high);
  const bool negative = scale == AxisScale::negative_logarithmic;
  const double least = negative ? -y.high : y.low, most = negative ? -y.low : y.high;
  std::string tics;
  for (double power = std::pow(10, std::floor(std::log10(least))); power <= most; power *= 10)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * power;
      if (value < least || value > most || (digit > 1 && most / least > 1e3)) continue;
      tics += fmt::format("{}\"{}\" {:.6g}", tics.empty() ? "" : ", ", tick_label(negative ? -value : value),
                          negative ? -value : value);
    }
  return fmt::format("{}set yrange [{:.8g}:{:.8g}]\nset ytics ({})\n",
                     negative ? "set nonlinear y via -log10(-y) inverse -10**(-y)\n" : "set logscale y\n", y.low,
                     y.high, tics);
}

std::string plot_commands(const CurveFigure& figure, const std::string& x, double floor) {
  std::string text;
  const auto part = [&](const std::string& what) { text += (text.empty() ? "plot " : ", \\\n     ") + what; };
  const bool labelled = figure.lines.size() > 1;
  std::vector<std::string> titled;
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    const CurveLine& line = figure.lines[i];
    const bool again = std::ranges::find(titled, line.label) != titled.end();
    const std::string title = labelled && !again ? "title " + gnuplot_text(line.label) : "notitle";
    titled.push_back(line.label);
    const std::string data = fmt::format("'{}.csv' index {}", figure.name, i);
    const std::size_t kind =  // a line or a mark of another kind shows where it hides an earlier one
        static_cast<std::size_t>(std::ranges::find(titled, line.label) - titled.begin());
    const std::string dashes = labelled && kind > 0 ? fmt::format(" dt {}", 1 + kind % 5) : "";
    if (figure.style == CurveStyle::marks) {
      // discs for the first, then larger and open ones: gnuplot's open types come before the filled ones
      const std::string points = fmt::format("pt {} ps {:.2f}", kind == 0 ? line.mark : line.mark - 1,
                                             0.6 + 0.35 * static_cast<double>(std::min<std::size_t>(kind, 5)));
      part(fmt::format("{} using {}:2 with lines lw 1.5{} lc rgb '{}' notitle", data, x, dashes, line.colour));
      part(
          fmt::format("{} using {}:2:3:4 with yerrorbars lw 1.5 {} lc rgb '{}' notitle", data, x, points, line.colour));
      part(fmt::format("{} using {}:2 with points lw 1.5 {} lc rgb '{}' {}", data, x, points, line.colour, title));
      continue;
    }
    if (!line.se.empty())
      part(fmt::format(
          "{0} using {1}:($3>{2:.8g}?$3:{2:.8g}):($4>{2:.8g}?$4:{2:.8g}) with filledcurves fs transparent solid "
          "0.2 noborder fc rgb '{3}' notitle",
          data, x, floor, line.colour));
    part(fmt::format("{} using {}:2 with lines lw 0.8 lc rgb '{}' notitle", data, x, faint(line.colour, "70")));
    part(fmt::format("{} using {}:5 with lines lw 2.2{} lc rgb '{}' {}", data, x, dashes, line.colour, title));
  }
  for (std::size_t i = 0; i < figure.spots.size(); ++i) {
    const CurveSpot& spot = figure.spots[i];
    const bool again = std::ranges::find(titled, spot.label) != titled.end();
    titled.push_back(spot.label);
    part(fmt::format("'{}.csv' index {} using {}:2 with points pt {} ps 1.9 lw 2 lc rgb '{}' {}", figure.name,
                     figure.lines.size() + i, x, spot.sign, spot.colour,
                     again ? "notitle" : "title " + gnuplot_text(spot.label)));
  }
  if (figure.reference)
    part(fmt::format("{:.10g} with lines dt 2 lw 1.5 lc rgb '#808080' title {}", *figure.reference,
                     gnuplot_text(figure.reference_label)));
  return text + "\n";
}

}  // namespace

int smoothing_window(std::size_t rows) { return rows < 20 ? 1 : std::max(3, static_cast<int>(rows / 20) | 1); }

std::vector<double> moving_average(std::span<const double> values, int window) {
  const auto count = static_cast<int>(values.size());
  std::vector<double> result(values.size());
  for (int i = 0; i < count; ++i) {
    double sum = 0;
    int terms = 0;
    for (int j = std::max(0, i - window / 2); j <= std::min(count - 1, i + window / 2); ++j)
      if (std::isfinite(values[j])) {
        sum += values[j];
        ++terms;
      }
    result[i] = terms > 0 ? sum / terms : std::nan("");
  }
  return result;
}

AxisInterval visible_interval(const CurveFigure& figure) {
  std::vector<double> values;
  const auto include = [&](double value) {
    if (std::isfinite(value)) values.push_back(value);
  };
  const double last = last_iteration(figure);
  for (const CurveLine& line : figure.lines)
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (line.y.size() >= 20 && line.x[i] < 0.05 * last) continue;
      include(line.y[i]);
      if (line.se.empty() || figure.style == CurveStyle::curve) continue;
      include(line.y[i] - line.se[i]);
      include(line.y[i] + line.se[i]);
    }
  if (figure.reference) include(*figure.reference);
  if (values.empty()) return {0, 1};
  std::ranges::sort(values);
  const std::size_t outside = figure.style == CurveStyle::curve ? values.size() / 20 : 0;
  double low = values[outside], high = values[values.size() - 1 - outside];
  const double span = high - low;
  low = std::max(values.front(), low - 0.5 * span);
  high = std::min(values.back(), high + 0.5 * span);
  if (AxisScale::linear != axis_scale({low, high}, figure.style)) return {low, high};
  const double margin = high > low ? 0.06 * (high - low) : std::max(1e-3, 0.1 * std::abs(low));
  return {low - margin, high + margin};
}

AxisScale axis_scale(const AxisInterval& y, CurveStyle style) {
  constexpr double decades = 100;
  if (style == CurveStyle::curve && y.low > 0 && y.high > decades * y.low) return AxisScale::logarithmic;
  if (style == CurveStyle::curve && y.high < 0 && y.low < decades * y.high) return AxisScale::negative_logarithmic;
  return AxisScale::linear;
}

bool draw_curves(const CurveFigure& figure, const std::filesystem::path& folder) {
  write_file(folder / (figure.name + ".csv"), csv_of(figure));
  const double last = last_iteration(figure);
  const bool thousands = last >= 10000;
  const AxisInterval y = visible_interval(figure);
  const AxisScale scale = axis_scale(y, figure.style);
  const std::size_t keys = labels_of(figure).size();
  const std::string script = fmt::format(
      "set encoding utf8\nset datafile separator ','\nset lmargin 9\nset rmargin 2\nset tmargin 2.2\nset border 3\n"
      "set tics out nomirror scale 0.5\nset grid ytics lt 1 lw 0.5 lc rgb '#c0808080'\n"
      "set title {} noenhanced offset 0,-0.5\nset xlabel '{}' offset 0,0.5\nset xrange [0:{:.6g}]\n{}set key {}\n{}"
      "reset\n",
      gnuplot_text(figure.title + (scale == AxisScale::linear ? "" : ", logarithmic")),
      thousands ? "thousands of iterations" : "iterations", std::max(1.0, last) / (thousands ? 1000 : 1) * 1.02,
      axis_commands(y, scale),
      keys == 0 ? "off" : "below vertical maxcols 1 left Left reverse noenhanced samplen 2 height 0.7",
      plot_commands(figure, thousands ? "($1/1000)" : "1", y.low));
  return draw({.name = figure.name, .width = 440, .height = 304 + 20 * static_cast<int>(keys), .script = script},
              folder);
}

}  // namespace hone
