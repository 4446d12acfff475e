#include "hone/report/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/base/file.hpp"
#include "hone/report/gnuplot.hpp"
#include "hone/report/text.hpp"

namespace hone {
namespace {

// One block a line, which gnuplot knows by its index.
std::string csv_of(const CurveFigure& figure) {
  std::string text = "# iteration,value,low,high,smoothed\n";
  for (const Line& line : figure.lines) {
    const auto smooth = moving_average(line.y, smoothing_window(line.y.size()));
    text += fmt::format("# {}\n", gnuplot_text(line.label));
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const double se = line.se.empty() ? std::nan("") : line.se[i];
      text += fmt::format("{:.10g},{:.8g},{:.8g},{:.8g},{:.8g}\n", line.x[i], line.y[i], line.y[i] - se, line.y[i] + se,
                          smooth[i]);
    }
    text += "\n\n";
  }
  return text;
}

double last_iteration(const CurveFigure& figure) {
  double last = 0;
  for (const Line& line : figure.lines)
    for (const double x : line.x) last = std::max(last, x);
  return last;
}

// A colour that lets through what is behind it: "#AArrggbb"
std::string faint(const std::string& colour, const char* alpha) { return "#" + (alpha + colour.substr(1)); }

std::string plot_commands(const CurveFigure& figure, const std::string& x) {
  std::string text;
  const auto part = [&](const std::string& what) { text += (text.empty() ? "plot " : ", \\\n     ") + what; };
  const bool labelled = figure.lines.size() > 1;
  std::vector<std::string> titled;
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    const Line& line = figure.lines[i];
    const bool again = std::ranges::find(titled, line.label) != titled.end();
    const std::string title = labelled && !again ? "title " + gnuplot_text(line.label) : "notitle";
    titled.push_back(line.label);
    const std::string data = fmt::format("'{}.csv' index {}", figure.name, i);
    if (figure.style == CurveStyle::marks) {
      part(fmt::format("{} using {}:2 with lines lw 1.5 lc rgb '{}' notitle", data, x, line.colour));
      part(fmt::format("{} using {}:2:3:4 with yerrorbars lw 1.5 pt 7 ps 0.6 lc rgb '{}' notitle", data, x, line.colour));
      part(fmt::format("{} using {}:2 with points pt 7 ps 0.6 lc rgb '{}' {}", data, x, line.colour, title));
      continue;
    }
    if (!line.se.empty())
      part(fmt::format("{} using {}:3:4 with filledcurves fs transparent solid 0.2 noborder fc rgb '{}' notitle", data, x,
                       line.colour));
    part(fmt::format("{} using {}:2 with lines lw 0.8 lc rgb '{}' notitle", data, x, faint(line.colour, "70")));
    part(fmt::format("{} using {}:5 with lines lw 2.2 lc rgb '{}' {}", data, x, line.colour, title));
  }
  if (figure.reference)
    part(fmt::format("{:.10g} with lines dt 2 lw 1.5 lc rgb '#808080' title {}", *figure.reference,
                     gnuplot_text(figure.reference_label)));
  return text + "\n";
}

}  // namespace

int smoothing_window(std::size_t rows) {
  if (rows < 20) return 1;
  return static_cast<int>(rows / 20) / 2 * 2 + 1 + (rows < 40 ? 2 : 0);
}

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

Interval visible_interval(const CurveFigure& figure) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  const auto include = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  const double last = last_iteration(figure);
  for (const Line& line : figure.lines)
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (line.y.size() >= 20 && line.x[i] < 0.05 * last) continue;
      include(line.y[i]);
      if (line.se.empty() || figure.style == CurveStyle::curve) continue;
      include(line.y[i] - line.se[i]);
      include(line.y[i] + line.se[i]);
    }
  if (figure.reference) include(*figure.reference);
  if (!(low <= high)) return {0, 1};
  const double margin = high > low ? 0.06 * (high - low) : std::max(1e-3, 0.1 * std::abs(low));
  return {low - margin, high + margin};
}

bool draw_curves(const CurveFigure& figure, const std::filesystem::path& folder) {
  write_file(folder / (figure.name + ".csv"), csv_of(figure));
  const double last = last_iteration(figure);
  const bool thousands = last >= 10000;
  const Interval y = visible_interval(figure);
  std::size_t keys = figure.reference ? 1 : 0;
  if (figure.lines.size() > 1) {
    std::vector<std::string> labels;
    for (const Line& line : figure.lines) labels.push_back(line.label);
    std::ranges::sort(labels);
    keys += static_cast<std::size_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
  }
  const std::string script = fmt::format(
      "set encoding utf8\nset datafile separator ','\nset border 3\nset tics out nomirror scale 0.5\n"
      "set grid ytics lt 1 lw 0.5 lc rgb '#c0808080'\nset title {} noenhanced\nset xlabel '{}'\nset xrange [0:{:.6g}]\n"
      "set yrange [{:.8g}:{:.8g}]\nset key {}\n{}reset\n",
      gnuplot_text(figure.title), thousands ? "thousands of iterations" : "iterations",
      std::max(1.0, last) / (thousands ? 1000 : 1) * 1.02, y.low, y.high,
      keys == 0 ? "off" : "below vertical maxcols 1 left Left reverse noenhanced samplen 2",
      plot_commands(figure, thousands ? "($1/1000)" : "1"));
  return draw({figure.name, 520, 320 + 20 * static_cast<int>(keys), script}, folder);
}

}  // namespace hone
