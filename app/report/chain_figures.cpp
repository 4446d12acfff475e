#include "app/report/chain_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/report/fit_figures.hpp"
#include "app/report/text.hpp"
#include "app/run/draws.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

constexpr auto axes =
    "set encoding utf8\nset datafile separator ','\nset border 3\nset tics out nomirror scale 0.5\nset key off\n";
constexpr const char* colours[] = {"#1f6fc4", "#138a9c", "#cc3b3b", "#b7791f"};
constexpr int rank_bins = 20, groups = 4;

// Of each group of chains: how many of its draws fall into each part of the ranks, relative to what is expected.
std::vector<std::vector<double>> ranks_of(const std::vector<double>& values) {
  const std::size_t n = values.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<std::vector<double>> counts(groups, std::vector<double>(rank_bins));
  for (std::size_t rank = 0; rank < n; ++rank)
    counts[order[rank] * groups / n][rank * rank_bins / n] +=
        static_cast<double>(groups * rank_bins) / static_cast<double>(n);
  return counts;
}

// The values of a variable of the data, flat; nothing if it is not there.
std::vector<double> datum_values(const std::string& file, const std::string& name) {
  if (file.empty() || !std::filesystem::is_regular_file(file)) return {};
  for (DataArray& array : read_data_arrays(file))
    if (array.name == name) return std::move(array.values);
  return {};
}

}  // namespace

std::optional<FigurePlan> plan_ranks(const RunRecord& run, const CsvTable& draws, const std::vector<std::string>& names,
                                     const std::filesystem::path& folder) {
  const double chains = run.number({"chains"});
  if (!(chains >= groups) || draws.rows() < 10 * rank_bins || names.empty()) return std::nullopt;
  const std::size_t shown = std::min<std::size_t>(4, names.size());
  std::string csv = "# part of the ranks, then draws of each quarter of the chains, relative to what is expected\n",
              plots;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto counts = ranks_of(*draws.column(names[i]));
    for (int b = 0; b < rank_bins; ++b) {
      csv += fmt::format("{:.4g}", (b + 0.5) / rank_bins);
      for (const auto& group : counts) csv += fmt::format(",{:.5g}", group[static_cast<std::size_t>(b)]);
      csv += "\n";
    }
    csv += "\n\n";
    plots += fmt::format("set title {} noenhanced offset 0,-0.5\nplot", gnuplot_text(names[i]));
    for (int g = 0; g < groups; ++g)
      plots += fmt::format(" 'ranks.csv' index {} using 1:{} with histeps lw 1.4 lc rgb '{}',", i, g + 2, colours[g]);
    plots += " 1 lw 1.5 dt 2 lc rgb '#404040'\n";
  }
  write_file(folder / "ranks.csv", csv);
  const int rows = static_cast<int>(shown + 1) / 2;
  const double width = 440, height = 170 * rows;
  const std::string script = fmt::format(
      "{}set xrange [0:1]\nset yrange [0:2.4]\nset xtics 0.5\nset ytics 1\nset multiplot layout {},2 margins "
      "{:.4f},{:.4f},{:.4f},{:.4f} spacing {:.4f},{:.4f}\n{}unset multiplot\nreset\n",
      axes, rows, 30 / width, 1 - 16 / width, 34 / height, 1 - 30 / height, 44 / width, 70 / height, plots);
  return FigurePlan{
      {.name = "ranks", .width = static_cast<int>(width), .height = static_cast<int>(height), .script = script},
      fmt::format("Ranks of the refined draws of {} parameters in four groups of chains, relative to a uniform "
                  "distribution.",
                  shown),
      fmt::format("Ranks of the refined draws among all of them, for four quarters of the chains ({}). Chains that "
                  "agree stay about the dashed line.",
                  run.number({"short_chains"}) > 0
                      ? "each from other starts, and from other draws of q"
                      : "blue and teal: those that began at draws of q; red and amber: those from the starts")};
}

std::optional<FigurePlan> plan_memory(const RunRecord& run, const std::filesystem::path& folder) {
  const Json* pairs = run.find({"checks", "pairs"});
  if (!pairs || !pairs->is_array() || pairs->size() < 2) return std::nullopt;
  std::string csv = "# t,squared jump,correlation of log p\n", words;
  double last = 1;
  for (const Json& at : *pairs) {
    const double t = number_in(at, "t"), jump = number_in(at, "squared_jump"),
                 correlation = number_in(at, "correlation_log_p");
    if (!std::isfinite(t) || !std::isfinite(jump) || !std::isfinite(correlation)) continue;
    csv += fmt::format("{:.6g},{:.6g},{:.6g}\n", t, jump, correlation);
    words = fmt::format("at t = {:.0f} the squared jump is {:.2f} and the correlation {:.2f}", t, jump, correlation);
    last = std::max(last, t);
  }
  if (words.empty()) return std::nullopt;
  write_file(folder / "memory.csv", csv);
  const std::string script = fmt::format(
      "{}set key below vertical maxcols 1 center Left reverse samplen 2 height 0.7\nset grid ytics lt 1 lw 0.5 lc rgb "
      "'#c0808080'\nset title 'What the chains have left "
      "behind'\nset xlabel 'refinement steps t' offset 0,0.5\nset logscale x 2\nset xrange [0.8:{:.6g}]\nset yrange "
      "[-0.2:*]\n"
      "plot 1 lw 1 dt 2 lc rgb '#808080' notitle, 'memory.csv' using 1:2 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb "
      "'{}' title 'squared jump', '' using 1:3 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb '{}' title 'correlation of "
      "log p'\n"
      "reset\n",
      axes, 1.25 * last, colours[0], colours[2]);
  return FigurePlan{
      {.name = "memory", .width = 440, .height = 340, .script = script},
      "Squared jump and correlation of log p against the number of steps: " + words + ".",
      fmt::format("How far chains moved from their draws of q (1: as far as independent draws), and what log p still "
                  "remembers, against t. Between the two halves of the chains, means, sds and tails drift by {} "
                  "standard errors; {} are allowed.",
                  number_text(run.number({"checks", "chains", "drift"})),
                  number_text(run.number({"checks", "chains", "drift_limit"})))};
}

std::optional<FigurePlan> plan_drift(const RunRecord& run, const std::filesystem::path& folder) {
  const Json* rounds = run.find({"checks", "drifts"});
  if (!rounds || !rounds->is_array() || rounds->size() < 2) return std::nullopt;
  std::string csv = "# t,drift,limit\n", words;
  double first = infinity, last = 1;
  for (const Json& at : *rounds) {
    const double t = number_in(at, "t"), drift = number_in(at, "drift"), limit = number_in(at, "limit");
    if (!std::isfinite(t) || !std::isfinite(drift) || !std::isfinite(limit)) continue;
    csv += fmt::format("{:.6g},{:.6g},{:.6g}\n", t, drift, limit);
    words = fmt::format("at t = {:.0f} it is {:.1f}, where {:.1f} is allowed", t, drift, limit);
    first = std::min(first, t);
    last = std::max(last, t);
  }
  if (words.empty()) return std::nullopt;
  write_file(folder / "drift.csv", csv);
  const std::string script = fmt::format(
      "{}set key below vertical maxcols 1 center Left reverse samplen 2 height 0.7\nset grid ytics lt 1 lw 0.5 lc rgb "
      "'#c0808080'\nset title 'Drift of the chains'\nset xlabel 'refinement steps t' offset 0,0.5\nset logscale x "
      "2\nset xrange [{:.6g}:{:.6g}]\nset yrange [0:*]\n"
      "plot 'drift.csv' using 1:2 with linespoints lw 1.5 pt 7 ps 0.5 lc rgb '{}' title 'largest drift, in standard "
      "errors', '' using 1:3 with lines lw 1 dt 2 lc rgb '#808080' title 'what chance allows'\nreset\n",
      axes, 0.8 * first, 1.25 * last, colours[0]);
  return FigurePlan{
      {.name = "drift", .width = 440, .height = 340, .script = script},
      "Largest drift of a mean, sd or tail in each round of the chains against the number of steps: " + words + ".",
      "How far means, sds and tails moved from the second quarter of the chains to their second half, by the length of "
      "the chains. A round above the dashed line is followed by a longer one, as far as the budget goes."};
}

std::optional<FigurePlan> plan_predictions(RunRecord& run, const std::filesystem::path& folder) {
  const Json* predictions = run.find({"groups", "posterior_predictive"});
  if (!predictions || !predictions->is_array()) return std::nullopt;
  for (const Json& entry : *predictions) {
    if (!entry.is_string()) continue;
    const std::string name = entry, what = name.substr(0, name.rfind('_'));
    const std::vector<double> seen = datum_values(run.setting("data"), what);
    if (seen.size() < 2) continue;
    const CsvTable all = read_csv_table(run.folder / "draws.csv");
    std::vector<const std::vector<double>*> columns;
    for (const NamedVariable& variable : group_names(all.names))
      if (variable.name == name)
        for (const std::size_t k : variable.entries) columns.push_back(&all.columns[k]);
    if (columns.size() != seen.size() || all.rows() == 0) continue;
    constexpr std::size_t copies = 30;
    const int bins = std::clamp(static_cast<int>(2 * std::sqrt(static_cast<double>(seen.size()))), 6, 40);
    std::vector<std::vector<double>> drawn;
    double low = *std::ranges::min_element(seen), high = *std::ranges::max_element(seen);
    for (std::size_t c = 0; c < std::min(copies, all.rows()); ++c) {
      std::vector<double>& own = drawn.emplace_back();
      for (const auto* column : columns) own.push_back((*column)[c * all.rows() / std::min(copies, all.rows())]);
      std::erase_if(own, [](double x) { return !std::isfinite(x); });
      if (own.empty()) continue;
      low = std::min(low, *std::ranges::min_element(own));
      high = std::max(high, *std::ranges::max_element(own));
    }
    if (!(high > low)) continue;
    std::string csv = "# centre, the data, predictions\n";
    std::vector<std::vector<double>> densities = {histogram(seen, low, high, bins)};
    for (const auto& own : drawn) densities.push_back(histogram(own, low, high, bins));
    for (int b = 0; b < bins; ++b) {
      csv += fmt::format("{:.8g}", low + (b + 0.5) * (high - low) / bins);
      for (const auto& density : densities) csv += fmt::format(",{:.6g}", density[static_cast<std::size_t>(b)]);
      csv += "\n";
    }
    write_file(folder / "predictions.csv", csv);
    std::string script = fmt::format("{}unset ytics\nset border 1\nset yrange [0:*]\nset title {} noenhanced\nplot ",
                                     axes, gnuplot_text(what));
    for (std::size_t k = 0; k < drawn.size(); ++k)
      script += fmt::format("'predictions.csv' using 1:{} with lines lw 0.8 lc rgb '#80{}', ", k + 3, colours[0] + 1);
    script += fmt::format("'' using 1:2 with lines lw 2.4 lc rgb '{}'\nreset\n", colours[2]);
    return FigurePlan{
        {.name = "predictions", .width = 440, .height = 300, .script = script},
        fmt::format("The distribution of {} values of {} and of {} sets that the model predicts.", seen.size(), what,
                    drawn.size()),
        fmt::format("{} in the data (red) and {} sets of predictions {} from the refined draws (blue). A model "
                    "that fits predicts data like these.",
                    what, drawn.size(), name)};
  }
  return std::nullopt;
}

}  // namespace hone
