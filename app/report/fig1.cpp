#include "app/report/fig1.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "app/report/contours.hpp"
#include "app/run/fig1.hpp"
#include "hone/base/statistics.hpp"

namespace hone {
namespace {

// The runs of one panel, paired by seed: both objectives started from the same q.
struct PanelRuns {
  Fig1Panel panel;
  std::vector<ToyResult> kl, vcd;
};

using Quantity = std::function<double(const ToyResult&)>;

// "0.334 ± 0.012": mean and standard deviation over seeds
std::string spread(const std::vector<ToyResult>& runs, const Quantity& quantity) {
  Moments moments;
  for (const ToyResult& run : runs) moments.add(quantity(run));
  return runs.size() > 1 ? fmt::format("{:.3f} ± {:.3f}", moments.mean(), moments.sd())
                         : fmt::format("{:.3f}", moments.mean());
}

double average_sd(const ToyResult& run) { return (run.sd[0] + run.sd[1]) / 2; }
double smallest_weight(const ToyResult& run) { return *std::ranges::min_element(run.weights); }

PanelRuns load(const std::filesystem::path& folder, const Fig1Panel& panel, int seeds) {
  PanelRuns runs{panel, {}, {}};
  for (int seed = 1; seed <= seeds; ++seed)
    for (const ObjectiveKind objective : {ObjectiveKind::kl, ObjectiveKind::vcd}) {
      const auto path = folder / "cells" / fig1_cell_id(panel, objective, seed) / "summary.json";
      auto& list = objective == ObjectiveKind::kl ? runs.kl : runs.vcd;
      list.push_back(ToyResult::from_json(read_file(path), path));
    }
  return runs;
}

std::string table(const std::vector<PanelRuns>& all) {
  std::string text =
      "| panel | target | q | objective | mean of q | sd of q | weights | VCD | KL(q ‖ p) |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const PanelRuns& runs : all)
    for (const auto* list : {&runs.kl, &runs.vcd}) {
      const ToyResult& first = list->front();
      const std::string weights = first.weights.empty() ? "" : "smaller " + spread(*list, smallest_weight);
      text += fmt::format(
          "| {} | {} | {} | {} | {}, {} | {}, {} | {} | {} | {} |\n", runs.panel.letter, first.target, first.family,
          first.objective, spread(*list, [](auto& r) { return r.mean[0]; }),
          spread(*list, [](auto& r) { return r.mean[1]; }), spread(*list, [](auto& r) { return r.sd[0]; }),
          spread(*list, [](auto& r) { return r.sd[1]; }), weights, spread(*list, [](auto& r) { return r.vcd.mean; }),
          spread(*list, [](auto& r) { return -r.elbo.mean; }));
    }
  return text;
}

// Which mode of the mixture target the mean of q is nearer to: (0.8, 0.8) or (−2, −2).
bool upper_mode(const ToyResult& run) { return run.mean[0] + run.mean[1] > -1.2; }

// What a panel shows, counted over its seeds.
std::string sentence(const PanelRuns& runs) {
  const std::size_t seeds = runs.kl.size();
  const bool modes = runs.panel.target == Toy::mixture && runs.kl.front().weights.empty();
  std::size_t pairs = 0, wider = 0, dead_kl = 0, dead_vcd = 0;
  Moments ratio;
  for (std::size_t i = 0; i < seeds; ++i) {
    const ToyResult &kl = runs.kl[i], &vcd = runs.vcd[i];
    if (modes && upper_mode(kl) != upper_mode(vcd)) continue;
    ++pairs;
    wider += vcd.sd[0] > kl.sd[0] && vcd.sd[1] > kl.sd[1];
    ratio.add(average_sd(vcd) / average_sd(kl));
    if (!kl.weights.empty()) {
      dead_kl += smallest_weight(kl) < 0.01;
      dead_vcd += smallest_weight(vcd) < 0.01;
    }
  }
  std::string text = fmt::format("({}) {}: ", runs.panel.letter, runs.panel.title);
  if (modes)
    text += fmt::format("from the same start both objectives end in the same mode in {} of {} seeds: ", pairs, seeds);
  if (pairs == 0) return text + "there is nothing to compare.";
  text +=
      fmt::format("q by VCD is wider than q by KL in both dimensions in {} of {} seeds, by a factor {:.2f} on average.",
                  wider, pairs, ratio.mean());
  if (!runs.kl.front().weights.empty())
    text += fmt::format(" A component dies (weight below 0.01) in {} of {} seeds under KL and in {} under VCD.",
                        dead_kl, seeds, dead_vcd);
  return text;
}

std::string csv(const std::vector<PanelRuns>& all) {
  std::string text =
      "panel,target,family,objective,seed,mean1,mean2,sd1,sd2,smallest_weight,vcd,vcd_se,elbo,elbo_se,"
      "acceptance,step_size\n";
  for (const PanelRuns& runs : all)
    for (const auto* list : {&runs.kl, &runs.vcd})
      for (const ToyResult& r : *list)
        text += fmt::format("{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.6g},{:.3g},{:.6g},{:.3g},{:.4f},{:.5g}\n",
                            runs.panel.letter, r.target, r.family, r.objective, r.seed, r.mean[0], r.mean[1], r.sd[0],
                            r.sd[1], r.weights.empty() ? "" : fmt::format("{:.6g}", smallest_weight(r)), r.vcd.mean,
                            r.vcd.se, r.elbo.mean, r.elbo.se, r.acceptance, r.step_size);
  return text;
}

}  // namespace

Fig1Report report_fig1(const std::filesystem::path& folder, int seeds) {
  std::vector<PanelRuns> all;
  std::vector<ContourPanel> contours;
  for (const Fig1Panel& panel : fig1_panels()) {
    all.push_back(load(folder, panel, seeds));
    ContourPanel contour{"fig1-" + panel.letter, fmt::format("({}) {}", panel.letter, panel.title), {}};
    for (const ObjectiveKind objective : {ObjectiveKind::kl, ObjectiveKind::vcd})
      contour.runs.push_back(folder / "cells" / fig1_cell_id(panel, objective, 1));
    contours.push_back(std::move(contour));
  }
  Fig1Report report;
  report.text = fmt::format(
      "# Figure 1: q fitted by KL and by VCD\n\nMean ± standard deviation over {} seeds. The VCD depends on the "
      "kernel's step size: each is estimated with a step size tuned to the same acceptance for its own q.\n\n{}\n",
      seeds, table(all));
  for (const PanelRuns& runs : all) report.text += sentence(runs) + "\n\n";
  write_file(folder / "fig1.csv", csv(all));
  write_file(folder / "fig1.md", report.text);
  std::filesystem::create_directories(folder / "figures");
  if (draw_contours("fig1", contours, folder / "figures")) report.picture = folder / "figures" / "fig1.png";
  return report;
}

}  // namespace hone
