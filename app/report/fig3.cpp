#include "app/report/fig3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/cell_summary.hpp"
#include "app/report/gnuplot.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

struct Curve {
  std::string data, engine;
  std::vector<double> steps, milliseconds;
  std::string rows;  // for gnuplot: t, median, quartiles

  std::optional<Line> line() const {  // two points always lie on one
    if (steps.size() < 3) return {};
    return fit_line(steps, milliseconds);
  }
};

struct PointTime {
  double median, low, high;  // milliseconds
  std::int64_t iterations;
};

PointTime time_of(const Json& json) {
  const auto milliseconds = [&](const char* key) { return 1e3 * json.at(key).get<double>(); };
  return {.median = milliseconds("seconds_per_iteration"),
          .low = milliseconds("lower_quartile"),
          .high = milliseconds("upper_quartile"),
          .iterations = json.at("iterations").get<std::int64_t>()};
}

Figure figure_of(const std::vector<Curve>& curves) {  // two panels per row, one row per engine
  const int rows = static_cast<int>(curves.size() + 1) / 2;
  std::string script = fmt::format(
      "set multiplot layout {},{}\nset xlabel 't, HMC steps'\nset ylabel 'ms per iteration'\n"
      "set key top left\nset xrange [0:27]\nset yrange [0:*]\n",
      rows, std::min<std::size_t>(curves.size(), 2));
  for (const Curve& curve : curves) {
    script += fmt::format("$points << EOD\n{}EOD\nset title 'VAE, {}, {}'\nplot ", curve.rows, title_of(curve.data),
                          curve.engine);
    if (const auto line = curve.line())
      script +=
          fmt::format("{:.6g} + {:.6g} * x lw 2 lc '#888888' title 'straight line', ", line->intercept, line->slope);
    script += "$points using 1:2:3:4 with yerrorbars pt 7 lc '#c8201e' title 'median, quartiles'\n";
  }
  return {.name = "fig3", .width = 1100, .height = 450 * rows, .script = script + "unset multiplot\n"};
}

std::string lines_text(const std::vector<Curve>& curves) {
  std::string text = "| data | engine | straight line, ms | R² | largest deviation |\n|---|---|---|---|---|\n";
  for (const Curve& curve : curves) {
    const auto line = curve.line();
    text += fmt::format("| {} | {} | {}\n", curve.data, curve.engine,
                        line ? fmt::format("{:.4g} + {:.4g} t | {:.4f} | {:.1f} % |", line->intercept, line->slope,
                                           line->r_squared, 100 * line->largest_deviation)
                             : "too few points | — | — |");
  }
  return text;
}

}  // namespace

Line fit_line(std::span<const double> x, std::span<const double> y) {
  Moments of_x, of_y;
  for (const double value : x) of_x.add(value);
  for (const double value : y) of_y.add(value);
  double product = 0, left = 0;
  for (std::size_t i = 0; i < x.size(); ++i) product += (x[i] - of_x.mean()) * (y[i] - of_y.mean());
  Line line;
  line.slope = of_x.raw().squares > 0 ? product / of_x.raw().squares : 0;
  line.intercept = of_y.mean() - line.slope * of_x.mean();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = line.intercept + line.slope * x[i];
    left += (y[i] - at) * (y[i] - at);
    line.largest_deviation = std::max(line.largest_deviation, std::abs(y[i] / at - 1));
  }
  line.r_squared = of_y.raw().squares > 0 ? 1 - left / of_y.raw().squares : 1;
  return line;
}

std::string report_fig3(const std::vector<Fig3Point>& points, const ReportContext& context) {
  std::string table = "| data | engine | t | ms per iteration (median) | quartiles |\n|---|---|---|---|---|\n";
  std::string csv = "data,engine,t,milliseconds,lower_quartile,upper_quartile,iterations\n";
  std::vector<Curve> curves;  // in the order of the points
  std::string no_device;
  for (const Fig3Point& point : points) {
    const auto found = read_cell(context, point.cell, time_of);
    if (!found) {
      if (!point.here()) {
        no_device = point.no_device;
        continue;
      }
      table += fmt::format("| {} | {} | {} | {} | — |\n", point.data, point.engine, point.steps,
                           context.missing.contains(point.data_set) ? "no data" : "not done");
      continue;
    }
    const auto& [median, low, high, iterations] = *found;
    table += fmt::format("| {} | {} | {} | {:.3f} | {:.3f} to {:.3f} |\n", point.data, point.engine, point.steps,
                         median, low, high);
    csv += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{}\n", point.data, point.engine, point.steps, median, low, high,
                       iterations);
    if (curves.empty() || curves.back().data != point.data || curves.back().engine != point.engine)
      curves.push_back({.data = point.data, .engine = point.engine, .steps = {}, .milliseconds = {}, .rows = {}});
    Curve& curve = curves.back();
    curve.steps.push_back(point.steps);
    curve.milliseconds.push_back(median);
    curve.rows += fmt::format("{} {:.6f} {:.6f} {:.6f}\n", point.steps, median, low, high);
  }
  const std::filesystem::path folder = context.folder / "figures";
  std::filesystem::create_directories(folder);
  write_file(folder / "fig3.csv", csv);
  std::string text = fmt::format("# Figure 3: time per iteration of the VAE by VCD against t, scale {}\n\n{}\n{}\n",
                                 context.scale, table, lines_text(curves));
  text +=
      "The paper has a picture without numbers, and says that time grows linearly with t. cpu: one thread, as in the "
      "paper. Every point was timed alone.\n";
  const bool device = std::ranges::any_of(curves, [](const Curve& curve) { return curve.engine == "cuda"; });
  if (!no_device.empty() && !device) text += fmt::format("No device ({}): only the CPU's part.\n", no_device);
  if (!curves.empty() && draw(figure_of(curves), folder)) text += "Picture: figures/fig3.svg\n";
  write_report(context, "fig3.md", text);
  return text;
}

}  // namespace hone
