#include "app/report/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "app/report/paper_table.hpp"
#include "app/report/text.hpp"
#include "app/run/methods.hpp"
#include "app/run/train_health.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// From summary.json, or else from the rows of metrics.csv.
std::string nonfinite_text(const RunRecord& run) {
  double count = run.number({"rejected_nonfinite"});
  if (const auto* rows = run.metrics.column("rejected_nonfinite"); rows && std::isnan(count))
    count = std::accumulate(rows->begin(), rows->end(), 0.0);
  if (std::isnan(count)) return "the number of non-finite proposals is not known";
  if (count == 0) return "all proposals were finite";
  return fmt::format("{} proposal{} not finite and {} rejected", count_text(count), count == 1 ? " was" : "s were",
                     count == 1 ? "was" : "were");
}

std::string acceptance_text(const RunRecord& run) {
  double acceptance = run.number({"acceptance"});
  if (const auto* rows = run.metrics.column("acceptance"); rows && !rows->empty() && std::isnan(acceptance))
    acceptance = rows->back();
  const std::string aim = run.setting("acceptance");
  if (std::isnan(acceptance))
    return refines(run.setting("objective")) ? "the acceptance is not known" : "nothing was refined";
  return fmt::format("{:.2f} of the proposals were accepted{}", acceptance,
                     aim.empty() ? "" : fmt::format(" (the goal was {})", aim));
}

// "After 1,500 of 2,000 iterations"
std::string how_far(const RunRecord& run) {
  const double made = run.iterations_made(), asked = run.iterations_asked();
  if (std::isnan(made)) return "After an unknown number of iterations";
  const std::string text = count_text(made);
  if (run.stopped_early())
    return fmt::format(
        "Stopped early after {} of {} iterations, because the validation data were best at iteration {},", text,
        count_text(asked), count_text(run.number({"best", "iteration"})));
  if (made < asked) return fmt::format("After {} of {} iterations (unfinished),", text, count_text(asked));
  return fmt::format("After all of its {} iterations", text);
}

// `entry`: of summary.json.
Estimate mixture_of(const RunRecord& run, std::string_view entry = "test_log_likelihood") {
  return {run.number({entry, "mixture"}), run.number({entry, "mixture_se"})};
}

// What hone eval --best found, if it ran.
std::string sentence_on_best(const RunRecord& run) {
  constexpr std::string_view entry = "best_test_log_likelihood";
  const Estimate best = mixture_of(run, entry);
  if (!std::isfinite(best.mean)) return {};
  return fmt::format(" The best model by the validation data has {} nats per datum over {} test data.",
                     estimate_text(best), count_text(run.number({entry, "points"})));
}

// What to do for a test log-likelihood.
std::string how_to_test(const RunRecord& run) {
  return run.number({"test_data"}) == 0
             ? " no data were held out for it (a training with split = 0.1 does that, and hone score takes data from a "
               "file)."
             : " hone eval estimates it from all test data.";
}

// What the last evaluation during training found, of a few of the test data.
std::string early_likelihood(const RunRecord& run) {
  const auto last = [&](const char* name) {
    const auto* column = run.evaluations.column(name);
    return column && !column->empty() ? column->back() : std::nan("");
  };
  const Estimate mixture{last("mixture"), last("mixture_se")};
  if (!std::isfinite(mixture.mean)) return " it has no test log-likelihood:";
  return fmt::format(" the test log-likelihood is {} nats per datum over the first {} test data;",
                     estimate_text(mixture), count_text(last("points")));
}

std::string likelihood_sentence(const RunRecord& run) {
  const Estimate mixture = mixture_of(run);
  std::string text = how_far(run);
  const std::string of_best = sentence_on_best(run);
  if (!std::isfinite(mixture.mean) && run.evaluations.rows() == 0 && !of_best.empty())
    return text + " the newest model has no test log-likelihood; hone eval estimates it." + of_best;
  if (!std::isfinite(mixture.mean)) return text + early_likelihood(run) + how_to_test(run) + of_best;
  text += fmt::format(
      " the test log-likelihood is {} nats per datum over {} data (by the mixture of the proposals, a lower bound in "
      "expectation)",
      estimate_text(mixture), count_text(run.number({"test_log_likelihood", "points"})));
  const auto match = match_paper(run);
  if (!match) return text + "." + of_best;
  text += fmt::format("; by the paper's best of three it is {}, where the paper has {} after {} iterations",
                      number_text(run.number({"test_log_likelihood", "value"})),
                      fixed_text(match->cell->log_likelihood, 2), count_text(paper_iterations));
  return text + (match->differences.empty() ? "." : " with other settings.") + of_best;
}

std::string training_sentence(const RunRecord& run) {
  const Estimate trend = elbo_trend(run.metrics);
  std::string text = "There are too few rows to say whether the ELBO has settled";
  if (std::isfinite(trend.mean) && std::isfinite(trend.se))
    text = fmt::format("The ELBO {} (it changed by {} from the second-to-last fifth of the run to the last)",
                       trend.mean > 4 * trend.se    ? "was still rising"
                       : trend.mean < -4 * trend.se ? "was falling"
                                                    : "neither rose nor fell clearly",
                       estimate_text(trend));
  if (const std::string trouble = run.text({"trouble", "what"}); !trouble.empty())
    text = "This training went wrong: " + trouble;
  else if (const Estimate elbo = run.estimate("elbo"), vcd = run.estimate("vcd"); q_is_lost(elbo.mean, vcd))
    text = fmt::format("q was left behind: it does not follow its chain (a VCD of {} nats at an ELBO of {})",
                       number_text(vcd.mean), number_text(elbo.mean));  // an earlier version's run
  const std::string advice = run.text({"trouble", "advice"});
  return fmt::format("{}, {}, and {}.{}", text, acceptance_text(run), nonfinite_text(run),
                     advice.empty() ? "" : " " + advice + ".");
}

std::string toy_verdict(const RunRecord& run) {
  if (run.summary.empty()) return how_far(run) + " the run has no final values. " + training_sentence(run);
  const Estimate elbo = run.estimate("elbo");
  return fmt::format(
      "Fitted by {} to the {} target, q is off by a KL(q ‖ p) of {}, and by a VCD of {} over {} refinement steps. Its "
      "means are {} and its standard deviations {}; {}, and {}.",
      run.text({"objective"}), run.text({"target"}), estimate_text({-elbo.mean, elbo.se}),
      estimate_text(run.estimate("vcd")), run.setting("steps"), numbers_text(run.find({"mean"})),
      numbers_text(run.find({"sd"})), acceptance_text(run), nonfinite_text(run));
}

std::string fit_verdict(const RunRecord& run) {
  static const std::map<std::string, std::string> words = {
      {"use-q", "Use q: it agrees with the refined draws within the tolerances."},
      {"use-refined", "Use the refined draws: they pass their checks, while q is off."},
      {"trust-neither", "Trust neither q nor the refined draws: the refined draws fail a check."}};
  const std::string verdict = run.text({"verdict"});
  const auto found = words.find(verdict);
  const std::string text = found != words.end() ? found->second : fmt::format("The verdict is '{}'.", verdict);
  const Json* reasons = run.find({"reasons"});
  std::string why = "No reason is given";
  if (verdict == "use-q")
    why = "The VCD is " + vcd_text(run);
  else if (reasons && reasons->is_array() && !reasons->empty() && reasons->front().is_string())
    why = "The first reason: " + reasons->front().get<std::string>();
  std::string finite = nonfinite_text(run);
  finite.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(finite.front())));
  return fmt::format("{} {}. {}.", text, why, finite);
}

using Quantity = std::function<double(const RunRecord&)>;

std::string spread(const std::vector<const RunRecord*>& runs, const Quantity& quantity) {
  Moments moments;
  for (const RunRecord* run : runs)
    if (const double value = quantity(*run); std::isfinite(value)) moments.add(value);
  if (moments.count() == 0) return "not known";
  return moments.count() == 1 ? number_text(moments.mean()) : estimate_text({moments.mean(), moments.sd()});
}

double kl_of(const RunRecord& run) { return -run.number({"elbo", "mean"}); }
double vcd_of(const RunRecord& run) { return run.number({"vcd", "mean"}); }

std::string compare_likelihoods(std::vector<const RunRecord*> runs) {
  std::erase_if(runs, [](const RunRecord* run) { return !std::isfinite(mixture_of(*run).mean); });
  if (runs.size() < 2) return "";
  std::ranges::sort(runs, std::greater<>(), [](const RunRecord* run) { return mixture_of(*run).mean; });
  const Estimate best = mixture_of(*runs[0]), next = mixture_of(*runs[1]);
  const auto points = [](const RunRecord* run) { return run->number({"test_log_likelihood", "points"}); };
  const bool same = std::ranges::all_of(runs, [&](const RunRecord* run) { return points(run) == points(runs[0]); });
  return fmt::format(
      "{} has the highest test log-likelihood, {}; next comes {}, {} lower. {}", runs[0]->name(), estimate_text(best),
      runs[1]->name(), number_text(best.mean - next.mean),
      same ? "The standard errors are over test data, which the runs share, so that a difference between "
             "runs is known better than they suggest; but one seed says nothing about others."
           : "They were evaluated on different numbers of test data, so the comparison is not quite fair.");
}

std::string compare_toys(std::vector<const RunRecord*> runs) {
  std::erase_if(runs, [](const RunRecord* run) { return !std::isfinite(vcd_of(*run)) || !std::isfinite(kl_of(*run)); });
  if (runs.size() < 2) return "";
  const auto by_vcd = *std::ranges::min_element(runs, {}, [](const RunRecord* run) { return vcd_of(*run); });
  const auto by_kl = *std::ranges::min_element(runs, {}, [](const RunRecord* run) { return kl_of(*run); });
  return fmt::format(
      "{} has the smallest VCD, {}; {} has the smallest KL(q ‖ p), {}. Each objective is best at what it "
      "minimises; the contours show what that means for q.",
      by_vcd->name(), estimate_text(by_vcd->estimate("vcd")), by_kl->name(), number_text(kl_of(*by_kl)));
}

std::string compare_fits(const std::vector<const RunRecord*>& runs) {
  std::map<std::string, int> verdicts;
  for (const RunRecord* run : runs) ++verdicts[run->text({"verdict"})];
  std::string text;
  for (const auto& [verdict, count] : verdicts)
    text += fmt::format("{}{} of {} say {}", text.empty() ? "" : ", ", count, runs.size(), verdict);
  return "Of these fits " + text + ".";
}

}  // namespace

Estimate elbo_trend(const CsvTable& metrics) {
  const auto *elbo = metrics.column("elbo"), *se = metrics.column("elbo_se");
  if (!elbo || !se || elbo->size() < 10) return {std::nan(""), std::nan("")};
  const std::size_t fifth = elbo->size() / 5;
  double change = 0, variance = 0;
  for (std::size_t i = elbo->size() - 2 * fifth; i < elbo->size(); ++i) {
    change += (i < elbo->size() - fifth ? -1 : 1) * (*elbo)[i] / static_cast<double>(fifth);
    variance += square((*se)[i] / static_cast<double>(fifth));
  }
  return {change, std::sqrt(variance)};
}

std::string verdict_of(const RunRecord& run) {
  if (run.kind == RunKind::toy) return toy_verdict(run);
  if (run.kind == RunKind::fit) return fit_verdict(run);
  return likelihood_sentence(run) + " " + training_sentence(run);
}

Standing standing_of(const RunRecord& run) {
  if (run.kind == RunKind::fit) {
    const std::string verdict = run.text({"verdict"});
    if (verdict.empty()) return {Page::Badge::open, "no verdict"};
    return {verdict == "trust-neither" ? Page::Badge::bad : Page::Badge::good, verdict};
  }
  if (run.find({"trouble"})) return {Page::Badge::bad, "this training went wrong"};
  if (run.summary.empty()) return {Page::Badge::open, "no summary: still running, or killed"};
  if (run.iterations_made() < run.iterations_asked()) {
    if (run.stopped_early()) return {Page::Badge::good, "stopped early"};
    return {Page::Badge::open, "not finished"};
  }
  return {Page::Badge::good, "finished"};
}

std::string verdict_of(const std::vector<const RunRecord*>& seeds) {
  if (seeds.size() == 1) return verdict_of(*seeds.front());
  const RunKind kind = seeds.front()->kind;
  if (kind == RunKind::fit) return compare_fits(seeds);
  const std::string nonfinite = spread(seeds, [](auto& run) { return run.number({"rejected_nonfinite"}); });
  const std::string acceptance = spread(seeds, [](auto& run) { return run.number({"acceptance"}); });
  if (kind == RunKind::toy)
    return fmt::format(
        "Over {} seeds KL(q ‖ p) is {} and the VCD {} (means ± standard deviations over seeds). Acceptance is "
        "{}, non-finite proposals are {}.",
        seeds.size(), spread(seeds, kl_of), spread(seeds, vcd_of), acceptance, nonfinite);
  const std::string elbo = spread(seeds, [](auto& run) { return run.number({"elbo", "mean"}); });
  if (std::ranges::none_of(seeds, [](const RunRecord* run) { return std::isfinite(mixture_of(*run).mean); }))
    return fmt::format(
        "Over {} seeds the test log-likelihood is not known yet:{} The ELBO is {} (mean ± standard deviation over "
        "seeds), acceptance {}, non-finite proposals are {}.",
        seeds.size(), how_to_test(*seeds.front()), elbo, acceptance, nonfinite);
  return fmt::format(
      "Over {} seeds the test log-likelihood is {} (mean ± standard deviation over seeds; by the mixture of "
      "the proposals). The ELBO is {}, acceptance {}, non-finite proposals are {}.",
      seeds.size(), spread(seeds, [](auto& run) { return mixture_of(run).mean; }), elbo, acceptance, nonfinite);
}

std::string comparison_of(const std::vector<const RunRecord*>& runs) {
  if (runs.size() < 2) return "";
  const RunKind kind = runs.front()->kind;
  return kind == RunKind::train ? compare_likelihoods(runs)
         : kind == RunKind::toy ? compare_toys(runs)
                                : compare_fits(runs);
}

std::string numbers_text(const Json* list) {
  std::string text;
  if (list && list->is_array())
    for (const Json& value : *list)
      text += (text.empty() ? "" : ", ") + number_text(value.is_number() ? value.get<double>() : std::nan(""));
  return text;
}

std::string vcd_text(const RunRecord& run) {
  const Estimate limit = run.estimate("vcd_limit");
  if (std::isfinite(limit.mean)) return estimate_text(limit) + " after many steps";
  const Json* vcd = run.find({"vcd"});
  if (!vcd || !vcd->is_object() || vcd->empty()) return "not known";
  const std::string t = std::prev(vcd->end()).key();
  return fmt::format("{} at t = {}", estimate_text({run.number({"vcd", t, "mean"}), run.number({"vcd", t, "se"})}), t);
}

std::string kind_text(RunKind kind) {
  return kind == RunKind::toy ? "hone toy" : kind == RunKind::train ? "hone train" : "hone fit";
}

}  // namespace hone
