#include "app/report/fit_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/chain_figures.hpp"
#include "app/report/gnuplot.hpp"
#include "app/report/text.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

constexpr std::size_t most_marginals = 6;
constexpr std::size_t shown_pairs = 600;  // points of each kind; more would only make the file larger
constexpr int bins = 40;
constexpr auto q_colour = "#1f6fc4", refined_colour = "#cc3b3b";
constexpr auto axes =
    "set encoding utf8\nset datafile separator ','\nset border 3\nset tics out nomirror scale 0.5\nset key off\n";

// How far q is off a parameter: the shift of its mean in refined sds, or the logarithm of the ratio of sds.
double disagreement(const Json& parameter) {
  const double sd = number_in(parameter, "sd");
  const double score = std::max(std::abs(number_in(parameter, "q_mean") - number_in(parameter, "mean")) / sd,
                                std::abs(std::log(number_in(parameter, "q_sd") / sd)));
  return std::isfinite(score) ? score : -1;
}

std::vector<std::string> worst_parameters(const RunRecord& run) {
  std::vector<std::pair<double, std::string>> scored;
  double left = run.number({"parameter_count"});  // parameters come before what is computed from them
  if (const Json* parameters = run.find({"parameters"}); parameters && parameters->is_object())
    for (const auto& [name, values] : parameters->items()) {
      if (left-- <= 0) break;
      if (const double score = disagreement(values); score >= 0) scored.emplace_back(score, name);
    }
  std::ranges::stable_sort(scored, std::greater<>(), &std::pair<double, std::string>::first);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most_marginals, scored.size()); ++i) names.push_back(scored[i].second);
  return names;
}

// A direction in which q is too narrow or too wide, and the two coordinates with the largest weight in it.
struct WorstDirection {
  std::string kind;  // "narrowest", "widest"
  double sd_ratio;
  std::string first, second;
};

std::vector<WorstDirection> worst_directions(const RunRecord& run) {
  std::vector<WorstDirection> result;
  const Json* names = run.find({"checks", "coordinates"});
  const Json* parameters = run.find({"parameters"});
  if (!names || !names->is_array() || !parameters || !parameters->is_object()) return result;
  for (const char* kind : {"narrowest", "widest"}) {
    const Json* list = run.find({"checks", kind});
    if (!list || !list->is_array() || list->empty()) continue;
    const Json& direction = list->front();
    const double sd_ratio = number_in(direction, "sd_ratio");
    if (std::isnan(sd_ratio) || !direction.contains("vector") || !direction["vector"].is_array() ||
        direction["vector"].size() != names->size())
      continue;
    std::vector<std::pair<double, std::string>> weights;  // of the coordinates that are parameters with draws
    for (std::size_t i = 0; i < names->size(); ++i) {
      if (!(*names)[i].is_string() || !direction["vector"][i].is_number()) continue;
      const std::string coordinate = (*names)[i].get<std::string>();  // "log tau"
      const std::string parameter = coordinate.substr(coordinate.rfind(' ') + 1);
      if (parameters->contains(parameter))
        weights.emplace_back(std::abs(direction["vector"][i].get<double>()), parameter);
    }
    if (weights.size() < 2) continue;
    std::ranges::stable_sort(weights, std::greater<>(), &std::pair<double, std::string>::first);
    result.push_back({.kind = kind, .sd_ratio = sd_ratio, .first = weights[0].second, .second = weights[1].second});
  }
  if (result.size() == 2 && result[0].first == result[1].first && result[0].second == result[1].second)
    result.pop_back();
  return result;
}

// The middle 99 % of all values.
std::pair<double, double> range_of(std::vector<double> values, const std::vector<double>& more) {
  values.insert(values.end(), more.begin(), more.end());
  std::erase_if(values, [](double x) { return !std::isfinite(x); });
  if (values.empty()) return {0, 1};
  std::ranges::sort(values);
  const double low = values[values.size() / 200], high = values[values.size() - 1 - values.size() / 200];
  return low < high ? std::pair{low, high} : std::pair{low - 0.5, high + 0.5};
}

// 1, 2 or 5 times a power of ten: about four ticks over the length.
double tick_step(double length) {
  const double rough = length / 4, power = std::pow(10, std::floor(std::log10(rough)));
  return power * (rough < 1.5 * power ? 1 : rough < 3.5 * power ? 2 : rough < 7.5 * power ? 5 : 10);
}

class FitFigures {
 public:
  FitFigures(RunRecord& run, const std::filesystem::path& folder) : run_(run), folder_(folder) {}

  std::vector<DrawnFigure> draw_all(bool& gnuplot) {
    const auto marginal_names = worst_parameters(run_);
    const auto directions = worst_directions(run_);
    std::vector<std::string> wanted = marginal_names;
    for (const auto& direction : directions) wanted.insert(wanted.end(), {direction.first, direction.second});
    bool drawn = true;
    if (!wanted.empty() && read_draws(wanted)) {
      if (!marginal_names.empty()) drawn = draw_marginals(marginal_names) && drawn;
      for (const WorstDirection& direction : directions) drawn = draw_pair(direction) && drawn;
    }
    drawn = draw_divergence() && drawn;
    if (refined_.rows() > 1) drawn = draw_plan(plan_ranks(run_, refined_, marginal_names, folder_)) && drawn;
    drawn = draw_plan(plan_memory(run_, folder_)) && drawn;
    drawn = draw_plan(plan_drift(run_, folder_)) && drawn;
    drawn = draw_plan(predictions()) && drawn;
    if (!drawn) gnuplot = false;
    return drawn ? std::move(figures_) : std::vector<DrawnFigure>{};
  }

 private:
  bool read_draws(const std::vector<std::string>& wanted) {
    try {
      q_ = read_csv_table(run_.folder / "draws_q.csv", wanted);
      refined_ = read_csv_table(run_.folder / "draws.csv", wanted);
    } catch (const InputError& error) {
      run_.faults.push_back(error.what());
      return false;
    }
    for (const CsvTable* table : {&q_, &refined_})
      run_.faults.insert(run_.faults.end(), table->faults.begin(), table->faults.end());
    for (const std::string& name : wanted)
      if (!q_.column(name) || !refined_.column(name)) {
        run_.faults.push_back(fmt::format("draws.csv, draws_q.csv: there is no column '{}'", name));
        return false;
      }
    if (q_.rows() > 1 && refined_.rows() > 1) return true;
    run_.faults.push_back("draws.csv, draws_q.csv: there are no draws");
    return false;
  }

  bool draw_marginals(const std::vector<std::string>& names) {
    std::string csv = "# centre,q,refined\n", plots, words;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto &q = *q_.column(names[i]), &refined = *refined_.column(names[i]);
      const auto [low, high] = range_of(q, refined);
      const auto q_density = histogram(q, low, high, bins), refined_density = histogram(refined, low, high, bins);
      csv += fmt::format("# {}\n", gnuplot_text(names[i]));
      for (int b = 0; b < bins; ++b)
        csv += fmt::format("{:.8g},{:.6g},{:.6g}\n", low + (b + 0.5) * (high - low) / bins, q_density[b],
                           refined_density[b]);
      csv += "\n\n";
      plots += fmt::format("set title {} noenhanced offset 0,-0.5\nset xrange [{:.8g}:{:.8g}]\nset xtics {:.3g}\n",
                           gnuplot_text(names[i]), low, high, tick_step(high - low));
      const char* comma = "plot ";
      for (const auto& [column, colour] : {std::pair{2, q_colour}, {3, refined_colour}}) {
        plots += fmt::format(
            "{}'marginals.csv' index {} using 1:{} with fillsteps fs transparent solid 0.15 noborder fc rgb "
            "'{}', '' index {} using 1:{} with histeps lw 1.6 lc rgb '{}'",
            comma, i, column, colour, i, column, colour);
        comma = ", ";
      }
      plots += "\n";
      words += fmt::format("{}{} (means {} and {}, standard deviations {} and {})", i ? "; " : "", names[i],
                           number_text(run_.number({"parameters", names[i], "q_mean"})),
                           number_text(run_.number({"parameters", names[i], "mean"})),
                           number_text(run_.number({"parameters", names[i], "q_sd"})),
                           number_text(run_.number({"parameters", names[i], "sd"})));
    }
    write_file(folder_ / "marginals.csv", csv);
    const int rows = static_cast<int>(names.size() + 1) / 2;
    const double width = 440, height = 170 * rows;
    const std::string script = fmt::format(
        "{}unset ytics\nset border 1\nset yrange [0:*]\nset multiplot layout {},2 margins "
        "{:.4f},{:.4f},{:.4f},{:.4f} spacing {:.4f},{:.4f}\n{}unset multiplot\nreset\n",
        axes, rows, 16 / width, 1 - 16 / width, 34 / height, 1 - 30 / height, 36 / width, 70 / height, plots);
    return add(
        {.name = "marginals", .width = static_cast<int>(width), .height = static_cast<int>(height), .script = script},
        "Marginals of q and of the refined draws: " + words + ".",
        fmt::format("Marginals of q (blue) and of the refined draws (red), for the {} on which they disagree most.",
                    names.size() == 1 ? "parameter" : fmt::format("{} parameters", names.size())));
  }

  bool draw_pair(const WorstDirection& d) {
    const std::string name = "pair_" + d.kind;
    const auto &q1 = *q_.column(d.first), &q2 = *q_.column(d.second);
    const auto &r1 = *refined_.column(d.first), &r2 = *refined_.column(d.second);
    const std::size_t shown = std::min({shown_pairs, q1.size(), r1.size()});
    std::string csv =
        fmt::format("# draws of q, then refined: {}, {}\n", gnuplot_text(d.first), gnuplot_text(d.second));
    for (std::size_t k = 0; k < shown; ++k)
      csv += fmt::format("{:.6g},{:.6g},{:.6g},{:.6g}\n", q1[k], q2[k], r1[k], r2[k]);
    write_file(folder_ / (name + ".csv"), csv);
    const auto [left, right] = range_of(q1, r1);
    const auto [bottom, top] = range_of(q2, r2);
    const std::string script = fmt::format(
        "{0}set title '{1} direction' offset 0,-0.5\nset xlabel {2} noenhanced\nset ylabel {3} noenhanced\n"
        "set xrange [{4:.6g}:{5:.6g}]\nset yrange [{6:.6g}:{7:.6g}]\nplot '{8}.csv' using 1:2 with points pt 7 ps 0.25 "
        "lc rgb '#50{9}', '' using 3:4 with points pt 7 ps 0.25 lc rgb '#50{10}'\nreset\n",
        axes, d.kind, gnuplot_text(d.first), gnuplot_text(d.second), left, right, bottom, top, name, q_colour + 1,
        refined_colour + 1);
    const std::string words = fmt::format(
        "along the {} direction, mostly {} and {}, the standard deviation of q is {:.2f} times that of the refined "
        "draws",
        d.kind, d.first, d.second, d.sd_ratio);
    return add({.name = name, .width = 440, .height = 360, .script = script},
               fmt::format("{} draws of q and as many refined ones: {}.", shown, words),
               fmt::format("{} draws of q (blue) and refined ones (red): {}.", shown, words));
  }

  // VCD ± standard error at t = 1, 2, 4, …
  bool draw_divergence() {
    const Json* vcd = run_.find({"vcd"});
    std::string csv = "# t,vcd,se\n", words;
    int points = 0;
    double last = 1, low = HUGE_VAL, high = -HUGE_VAL;
    if (vcd && vcd->is_object())
      for (const auto& [t, value] : vcd->items()) {
        const Estimate estimate{run_.number({"vcd", t, "mean"}), run_.number({"vcd", t, "se"})};
        const double steps = std::strtod(t.c_str(), nullptr);
        if (!std::isfinite(estimate.mean) || !(steps >= 1)) continue;
        csv += fmt::format("{:.6g},{:.8g},{:.4g}\n", steps, estimate.mean, estimate.se);
        words = fmt::format("{}{}{} at t = {:.0f}", words, points ? ", " : "", estimate_text(estimate), steps);
        last = std::max(last, steps);
        const double se = std::isfinite(estimate.se) ? estimate.se : 0;
        low = std::min(low, estimate.mean - se);
        high = std::max(high, estimate.mean + se);
        ++points;
      }
    if (points == 0) {
      run_.faults.push_back("summary.json: has no values of the VCD");
      return true;
    }
    write_file(folder_ / "vcd_steps.csv", csv);
    const double margin = high > low ? 0.1 * (high - low) : 1;
    const std::string script = fmt::format(
        "{}set grid ytics lt 1 lw 0.5 lc rgb '#c0808080'\nset title 'VCD ± standard error'\nset xlabel 'refinement "
        "steps t'\nset logscale x 2\nset xrange [0.8:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\n"
        "plot 'vcd_steps.csv' using 1:2 with lines lw 1.5 lc rgb '{}', '' using 1:2:3 with yerrorbars lw 1.5 pt 7 ps "
        "0.6 lc rgb '{}'\nreset\n",
        axes, 1.25 * last, low - margin, high + margin, q_colour, q_colour);
    return add({.name = "vcd_steps", .width = 440, .height = 300, .script = script}, "The VCD of q: " + words + ".",
               "The VCD against the number t of refinement steps: it levels off once the refined draws have forgotten "
               "where they came from.");
  }

  std::optional<FigurePlan> predictions() {
    try {
      return plan_predictions(run_, folder_);
    } catch (const Error& error) {  // of a data file that has changed
      run_.faults.push_back(error.what());
      return std::nullopt;
    }
  }

  bool draw_plan(const std::optional<FigurePlan>& plan) {
    return !plan || add(plan->figure, plan->alternative, plan->caption);
  }

  // False if gnuplot is not installed. A figure that it cannot draw is a fault of the run.
  bool add(const Figure& figure, std::string alternative, std::string caption) {
    try {
      if (!draw(figure, folder_)) return false;
      figures_.push_back({figure.name, std::move(alternative), std::move(caption)});
    } catch (const Error& error) {
      run_.faults.push_back(error.what());
    }
    return true;
  }

  RunRecord& run_;
  const std::filesystem::path& folder_;
  CsvTable q_, refined_;
  std::vector<DrawnFigure> figures_;
};

}  // namespace

std::vector<double> histogram(const std::vector<double>& values, double low, double high, int bins_wanted) {
  std::vector<double> density(static_cast<std::size_t>(bins_wanted));
  const double width = (high - low) / bins_wanted;
  for (const double x : values)
    if (x >= low && x <= high)
      density[static_cast<std::size_t>(std::min(bins_wanted - 1, static_cast<int>((x - low) / width)))] +=
          1 / (width * static_cast<double>(values.size()));
  return density;
}

std::vector<DrawnFigure> draw_fit_figures(RunRecord& run, const std::filesystem::path& folder, bool& gnuplot) {
  return FitFigures(run, folder).draw_all(gnuplot);
}

}  // namespace hone
