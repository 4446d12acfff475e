#include "app/report/learning_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "app/report/text.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

constexpr std::size_t most_points = 800;  // per line; more would only make the page larger
constexpr std::size_t fewest_rows = 5;    // per line; fewer are shown as marks

// Means over `rows` rows, placed at the last of them; standard errors as for independent rows.
CurveLine condensed(const CurveLine& line, std::size_t rows) {
  if (rows <= 1) return line;
  CurveLine result{line.label, line.colour, {}, {}, {}};
  for (std::size_t begin = 0; begin < line.x.size(); begin += rows) {
    const std::size_t end = std::min(line.x.size(), begin + rows);
    double sum = 0, squares = 0, count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(line.y[i])) continue;
      sum += line.y[i];
      squares += line.se.empty() ? 0 : square(line.se[i]);
      ++count;
    }
    result.x.push_back(line.x[end - 1]);
    result.y.push_back(sum / count);
    if (!line.se.empty()) result.se.push_back(std::sqrt(squares) / count);
  }
  return result;
}

// A column of metrics.csv. Groups of runs show only lines, no bands.
CurveFigure curves_of(const Section& section, const std::string& column, const std::string& title) {
  CurveFigure figure{.name = column, .title = title, .lines = {}};
  for (const RunGroup& group : section.groups)
    for (const RunRecord* run : group.runs) {
      const auto *x = run->metrics.column("iteration"), *y = run->metrics.column(column),
                 *se = run->metrics.column(column + "_se");
      if (!x || !y || std::ranges::none_of(*y, [](double value) { return std::isfinite(value); })) continue;
      CurveLine line{.label = group.label, .colour = group.colour, .x = *x, .y = *y, .se = {}};
      if (column == "vcd" && se && group.runs.size() == 1) line.se = *se;
      figure.lines.push_back(condensed(line, (x->size() + most_points - 1) / most_points));
    }
  const auto few = [](const CurveLine& line) { return line.x.size() < fewest_rows; };
  if (std::ranges::all_of(figure.lines, few)) figure.style = CurveStyle::marks;
  return figure;
}

// Every evaluation of a run on one part of the data, with one line per number of data, because levels of other data
// cannot be compared. If there are several at one iteration, the last one.
std::map<double, CurveLine> likelihoods_in(const CsvTable& rows) {
  std::map<double, CurveLine> lines;
  const auto *x = rows.column("iteration"), *points = rows.column("points"), *y = rows.column("mixture"),
             *se = rows.column("mixture_se");
  for (std::size_t i = 0; x && points && y && se && i < x->size(); ++i) {
    if (!std::isfinite((*y)[i]) || !std::isfinite((*x)[i]) || !std::isfinite((*points)[i])) continue;
    CurveLine& line = lines[(*points)[i]];
    if (line.x.empty() || line.x.back() != (*x)[i]) {
      line.x.push_back((*x)[i]);
      line.y.emplace_back();
      line.se.emplace_back();
    }
    line.y.back() = (*y)[i];
    line.se.back() = (*se)[i];
  }
  return lines;
}

std::map<double, CurveLine> test_likelihoods(const RunRecord& run) {
  std::map<double, CurveLine> lines = likelihoods_in(run.evaluations);
  const auto last = [&](std::string_view key) { return run.number({"test_log_likelihood", key}); };
  if (lines.empty() && std::isfinite(last("iteration")) && std::isfinite(last("mixture")) &&
      std::isfinite(last("points")))
    lines[last("points")] = {.label = "",  // an early version's
                             .colour = "",
                             .x = {last("iteration")},
                             .y = {last("mixture")},
                             .se = {last("mixture_se")}};
  return lines;
}

// The best model by validation data, and the last one if they ended the training.
void add_spots(CurveFigure& figure, const RunRecord& run, const CurveLine& line) {
  constexpr int ring = 6, cross = 2;
  const double best = run.number({"best", "iteration"});
  auto at = std::ranges::find(line.x, best);
  if (std::isnan(best)) at = line.x.begin() + (std::ranges::max_element(line.y) - line.y.begin());  // no summary yet
  if (at == line.x.end()) return;
  const auto add = [&](double x, double y, const char* label, int sign) {
    figure.spots.push_back({.x = x, .y = y, .label = label, .colour = line.colour, .sign = sign});
  };
  add(*at, line.y[static_cast<std::size_t>(at - line.x.begin())], "the best model", ring);
  if (run.stopped_early() && line.x.back() == run.iterations_made())
    add(line.x.back(), line.y.back(), "stopped early", cross);
}

// `part`: "test" or "validation".
LearningCurve likelihood_curve(const Section& section, const std::string& part) {
  const bool validation = part == "validation";
  CurveFigure figure{
      .name = part + "_log_likelihood",
      .title = part + (validation ? " log-likelihood (mixture)" : " log-likelihood (mixture of proposals)"),
      .lines = {},
      .style = CurveStyle::marks};
  std::vector<double> numbers;  // of data, one per line
  for (const RunGroup& group : section.groups)
    for (const RunRecord* run : group.runs)
      for (auto& [points, line] : validation ? likelihoods_in(run->validations) : test_likelihoods(*run)) {
        line.label = group.label;
        line.colour = group.colour;
        if (validation) add_spots(figure, *run, line);
        figure.lines.push_back(std::move(line));
        numbers.push_back(points);
      }
  const std::set<double> different(numbers.begin(), numbers.end());
  const bool mixed = different.size() > 1;
  for (std::size_t i = 0; mixed && i < numbers.size(); ++i) {
    static constexpr int marks[] = {7, 9, 5, 13};  // disc, triangle, square, diamond
    figure.lines[i].label += fmt::format(", {} {} data", count_text(numbers[i]), part);
    figure.lines[i].mark = marks[std::distance(different.begin(), different.find(numbers[i])) % 4];
  }
  const std::string data = numbers.empty() || mixed
                               ? part + " data"
                               : fmt::format("the first {} {} data", count_text(numbers.front()), part);
  return {figure, "",
          fmt::format("The log-likelihood of {}, in nats per datum, ± standard error over data: one mark per "
                      "evaluation{}",
                      data,
                      validation ? " during training. --best uses the best model (ring)."
                                 : ", during training or by hone eval.")};
}

// Where the lines of a figure begin and end, for readers who cannot see it.
std::string alternative_of(const CurveFigure& figure) {
  constexpr std::size_t most = 8;
  std::string text = figure.title + " against iterations.";
  for (std::size_t i = 0; i < std::min(most, figure.lines.size()); ++i) {
    const CurveLine& line = figure.lines[i];
    const auto smooth = moving_average(line.y, smoothing_window(line.y.size()));
    const auto at = [](double iteration) { return count_text(iteration); };
    text += fmt::format(" {}: from {} at iteration {} to {} at iteration {}.", line.label, number_text(smooth.front()),
                        at(line.x.front()), number_text(smooth.back()), at(line.x.back()));
  }
  if (figure.lines.size() > most) text += fmt::format(" And {} more.", figure.lines.size() - most);
  for (std::size_t i = 0; i < std::min(most, figure.spots.size()); ++i)
    text += fmt::format(" Marked, {}: {} at iteration {}.", figure.spots[i].label, number_text(figure.spots[i].y),
                        count_text(figure.spots[i].x));
  return text;
}

std::string smoothing_of(const CurveFigure& figure, const Section& section) {
  int least = 1 << 30, most = 1;
  for (const CurveLine& line : figure.lines) {
    least = std::min(least, smoothing_window(line.y.size()));
    most = std::max(most, smoothing_window(line.y.size()));
  }
  if (most == 1) return "Not smoothed: there are few rows.";
  const auto many = [](const RunRecord* run) { return run->metrics.rows() > most_points; };
  return fmt::format("Thin: {}rows of metrics.csv; thick: mean over {} neighbours. Outliers are cut.",
                     std::ranges::any_of(section.runs(), many) ? "means over several " : "",
                     least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

}  // namespace

std::vector<LearningCurve> learning_curves(const Section& section, const std::string& suffix) {
  std::vector<LearningCurve> curves;
  const auto add = [&](CurveFigure figure, const std::string& caption) {
    if (figure.lines.empty()) return;
    figure.name += suffix;
    const std::string words = alternative_of(figure);
    const std::string smoothing = figure.style == CurveStyle::curve ? " " + smoothing_of(figure, section) : "";
    curves.push_back({std::move(figure), words, caption + smoothing});
  };
  add(curves_of(section, "elbo", "ELBO"), section.kind == RunKind::toy
                                              ? "The ELBO, that is −KL(q ‖ p), in nats."
                                              : "The ELBO of the training data, in nats per datum.");
  CurveFigure vcd = curves_of(section, "vcd", "VCD");
  const bool band = std::ranges::any_of(vcd.lines, [](const CurveLine& line) { return !line.se.empty(); });
  add(std::move(vcd), band ? "The VCD ± one standard error of each row." : "The VCD.");
  for (const char* part : {"validation", "test"}) {
    LearningCurve likelihood = likelihood_curve(section, part);
    add(std::move(likelihood.figure), likelihood.caption);
  }
  CurveFigure acceptance = curves_of(section, "acceptance", "acceptance");
  const std::string aim = section.groups.front().first().setting("acceptance");
  if (const double level = std::strtod(aim.c_str(), nullptr); level > 0) {
    acceptance.reference = level;
    acceptance.reference_label = "aimed at";
  }
  add(std::move(acceptance), "Share of accepted proposals.");
  add(curves_of(section, "step_size", "step size"), "Step size of the kernel.");
  return curves;
}

}  // namespace hone
