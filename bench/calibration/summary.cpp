#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/calibration/run.hpp"
#include "hone/base/scalar.hpp"

namespace hone::calibration {
namespace {

using Rows = std::vector<const Row*>;

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

std::string share(std::size_t part, std::size_t whole) {
  if (whole == 0) return "0 of 0";
  return fmt::format("{} of {} ({:.1f} %)", part, whole,
                     100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::size_t count(const Rows& rows, const std::function<bool(const Row&)>& holds) {
  return static_cast<std::size_t>(std::ranges::count_if(rows, [&](const Row* r) { return holds(*r); }));
}

// The chance that a run whose draws are off has a higher score than one whose draws are not; a tie counts half.
double area_under_curve(const Rows& rows, const std::function<double(const Row&)>& score,
                        const std::function<bool(const Row&)>& is_off) {
  double wins = 0, pairs = 0;
  for (const Row* bad : rows) {
    if (!is_off(*bad)) continue;
    for (const Row* good : rows) {
      if (is_off(*good)) continue;
      const double difference = score(*bad) - score(*good);
      wins += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
      ++pairs;
    }
  }
  return pairs > 0 ? wins / pairs : std::nan("");
}

double level(const Row& r) { return r.verdict == "use-q" ? 0 : r.verdict == "use-refined" ? 1 : 2; }
double finite(double score) { return std::isnan(score) ? 1e300 : score; }

std::string curves_table(const Rows& rows) {
  Rows fitted;
  for (const Row* r : rows)
    if (r->verdict != "refused") fitted.push_back(r);
  const auto of_q = [](const Row& r) { return off(r.q); };
  const auto of_refined = [](const Row& r) { return off(r.refined); };
  std::string text = "| score | draws of q | refined draws |\n|---|---|---|\n";
  const std::pair<const char*, std::function<double(const Row&)>> scores[] = {
      {"hone's verdict: use-q < use-refined < trust-neither", level},
      {"k-hat", [](const Row& r) { return finite(r.k_hat); }},
      {"k-hat > 0.7", [](const Row& r) { return r.k_hat > 0.7 || std::isnan(r.k_hat) ? 1.0 : 0.0; }},
      {"nested R-hat", [](const Row& r) { return finite(r.nested_rhat); }},
      {"nested R-hat > 1.01", [](const Row& r) { return r.nested_rhat <= 1.01 ? 0.0 : 1.0; }},
      {"plain R-hat", [](const Row& r) { return finite(r.plain_rhat); }},
      {"plain R-hat > 1.01", [](const Row& r) { return r.plain_rhat <= 1.01 ? 0.0 : 1.0; }}};
  for (const auto& [name, score] : scores)
    text += fmt::format("| {} | {:.3f} | {:.3f} |\n", name, area_under_curve(fitted, score, of_q),
                        area_under_curve(fitted, score, of_refined));
  return text;
}

// What each check does: how well it tells good refined draws from bad ones, and how many it refuses that no other does.
std::string checks_table(const Rows& rows) {
  Rows fitted;
  for (const Row* r : rows)
    if (r->verdict != "refused") fitted.push_back(r);
  const auto of_refined = [](const Row& r) { return off(r.refined); };
  std::string text =
      "| check | area | refuses bad draws | refuses good ones | bad, alone | good, alone "
      "|\n|---|---|---|---|---|---|\n";
  for (std::size_t k = 0; k < check_names.size(); ++k) {
    const auto refuses = [k](const Row& r) { return !(r.scores[k] <= 1); };
    const auto alone = [&](const Row& r) {
      return refuses(r) && std::ranges::count_if(r.scores, [](double s) { return !(s <= 1); }) == 1;
    };
    const auto number = [&](const auto& holds, bool bad) {
      return count(fitted, [&](const Row& r) { return holds(r) && off(r.refined) == bad; });
    };
    text += fmt::format("| {} | {:.3f} | {} | {} | {} | {} |\n", check_names[k],
                        area_under_curve(
                            fitted, [k](const Row& r) { return finite(r.scores[k]); }, of_refined),
                        number(refuses, true), number(refuses, false), number(alone, true), number(alone, false));
  }
  return text;
}

std::string line_for(const Case& one, const Rows& rows) {
  double centre = 0, spread = 1;
  std::vector<double> gradients, seconds;
  std::size_t wrong = 0;
  for (const Row* r : rows) {
    if (r->verdict != "refused") gradients.push_back(static_cast<double>(r->gradients));
    seconds.push_back(r->seconds);
    wrong += r->says_use() && off(r->recommended());
    centre = std::max(centre, r->recommended().centre);
    if (std::abs(std::log(r->recommended().spread)) > std::abs(std::log(spread))) spread = r->recommended().spread;
  }
  const auto said = [&](const char* verdict) {
    return count(rows, [&](const Row& r) { return r.verdict == verdict; });
  };
  const std::string errors = one.truth ? fmt::format("{:.3f} | {:.2f}", centre, spread) : "– | –";
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} | {:.2f} |\n", one.name, one.kind, one.how,
                     said("use-q"), said("use-refined"), said("trust-neither"), said("refused"), wrong, errors,
                     median(gradients), median(seconds));
}

}  // namespace

std::string summary_of(const std::vector<Case>& cases, const std::vector<Row>& rows) {
  Rows all, with_answer, without;
  std::string table;
  std::size_t posteriors = 0;
  for (const Case& one : cases) {
    Rows own;
    for (const Row& r : rows)
      if (r.posterior == one.name) own.push_back(&r);
    if (own.empty()) continue;
    ++posteriors;
    table += line_for(one, own);
    all.insert(all.end(), own.begin(), own.end());
    Rows& side = one.truth ? with_answer : without;
    side.insert(side.end(), own.begin(), own.end());
  }
  double seconds = 0;
  for (const Row* r : all) seconds += r->seconds;
  const auto use = [](const Row& r) { return r.says_use(); };
  const auto neither = [](const Row& r) { return !r.says_use(); };
  const auto false_use = [](const Row& r) { return r.says_use() && off(r.recommended()); };
  const auto strictly = [](const Row& r) { return r.says_use() && off(r.recommended(), strictly_off); };
  const auto right = [](const Row& r) { return !off(r.refined); };
  const auto false_neither = [](const Row& r) { return !r.says_use() && !off(r.refined); };
  std::string text = fmt::format(
      "{} posteriors, {} runs, {:.1f} core-minutes. Off means: the worst mean is more than {} sd from the answer, or "
      "the worst sd more than {:.0f} % (where tails are heavy: the median and the distance of the 5 % and 95 % "
      "quantiles). Every verdict to use draws of a posterior without a finite mass is wrong, too.\n\n",
      posteriors, all.size(), seconds / 60, most_off.centre, 100 * (most_off.spread - 1));
  text += "| | |\n|---|---|\n";
  text += fmt::format("| verdicts that say use, and the draws are off | {} |\n",
                      share(count(all, false_use), count(all, use)));
  text += fmt::format("| … among posteriors with an answer | {} |\n",
                      share(count(with_answer, false_use), count(with_answer, use)));
  text += fmt::format("| … by more than {} sd in a mean or {:.0f} % in an sd | {} |\n", strictly_off.centre,
                      100 * (strictly_off.spread - 1), share(count(with_answer, strictly), count(with_answer, use)));
  text += fmt::format("| trust-neither, though the refined draws are not off | {} |\n",
                      share(count(with_answer, false_neither), count(with_answer, right)));
  text += fmt::format("| no use of posteriors with an answer | {} |\n",
                      share(count(with_answer, neither), with_answer.size()));
  text += fmt::format("| posteriors without an answer: not called fit for use | {} |\n",
                      share(count(without, neither), without.size()));
  text +=
      "\nArea under the curve: the chance that a run whose draws are off has the higher score (a tie counts half).\n\n";
  text += curves_table(all);
  text += "\nThe checks of the refined draws, each by its value over its limit.\n\n";
  text += checks_table(all);
  text +=
      "\nPer posterior: number of verdicts of each kind, wrong uses, the worst mean and sd of the draws that the "
      "verdict "
      "recommends (of the refined ones where it trusts neither), medians of gradients and seconds.\n\n"
      "| posterior | kind | answer by | use-q | use-refined | trust-neither | refused | wrong use | mean, sd | sd "
      "ratio | "
      "gradients | seconds |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  return text + table;
}

}  // namespace hone::calibration
