#include "app/report/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "app/report/paper_table.hpp"
#include "app/report/text.hpp"
#include "app/report/words.hpp"
#include "app/run/methods.hpp"
#include "app/run/progress.hpp"

namespace hone {
namespace {

constexpr std::size_t most_single = 8;  // runs of a section that get a group each

std::string problem_of(const RunRecord& run) {
  const auto said = [&](const char* key) {
    const std::string text = run.text({key});
    return text.empty() ? run.setting(key) : text;
  };
  if (run.kind == RunKind::toy) return said("target") + " target";
  if (run.kind == RunKind::train) return model_in_words(said("model"), said("likelihood")) + " on " + said("data");
  const std::string data = said("data");
  return said("model") + (data.empty() ? "" : " with " + data);
}

// A text that is the same for runs that differ only in their seeds.
std::string without_seed(const RunRecord& run) {
  std::string text;
  for (const auto& [key, value] : run.config)
    if (key != "seed" && key != "threads") text += fmt::format("{}={}\n", key, value);
  return text;
}

std::string name_without_seed(std::string name) {
  const auto seed = name.rfind("seed");
  if (seed == name.npos || seed < 2 || name.find_first_not_of("0123456789", seed + 4) != name.npos) return name;
  return name.substr(0, seed - 1);
}

void name_groups(std::vector<Section>& sections) {
  static const std::vector<std::string> palette = {"#1f6fc4", "#cc3b3b", "#b7791f", "#2a9156",
                                                   "#7c53b8", "#138a9c", "#bd4f8b", "#66758a"};
  static const std::map<std::string, std::string> by_objective = {{name_of(ObjectiveKind::kl), palette[0]},
                                                                  {name_of(ObjectiveKind::vcd), palette[1]},
                                                                  {name_of(ObjectiveKind::hoffman), palette[2]},
                                                                  {name_of(ObjectiveKind::li2017), palette[4]}};
  for (Section& section : sections) {
    std::multiset<std::string> names;
    std::set<std::string> objectives;
    for (const RunGroup& group : section.groups) {
      names.insert(group.first().name());
      objectives.insert(group.first().setting("objective"));
    }
    const bool one_each = objectives.size() == section.groups.size() &&
                          std::ranges::all_of(objectives, [](auto& name) { return by_objective.contains(name); });
    for (std::size_t i = 0; i < section.groups.size(); ++i) {
      RunGroup& group = section.groups[i];
      const std::string name = group.first().name();
      group.label = names.count(name) > 1 ? group.first().folder.string() : name;
      if (group.runs.size() > 1) group.label = fmt::format("{} ({} seeds)", name_without_seed(name), group.runs.size());
      group.colour = one_each ? by_objective.at(group.first().setting("objective")) : palette[i % palette.size()];
    }
  }
}

// One row of the table of facts: a text, or numbers, which groups of runs show as means and spreads.
struct Fact {
  std::string name;
  std::function<std::string(const RunRecord&)> text;
  std::function<std::vector<double>(const RunRecord&)> numbers = {};
};

Fact entry(std::string name, const char* key) {
  return {std::move(name), [key](const RunRecord& run) { return run.text({key}); }};
}

Fact count(std::string name, const char* key) {
  const auto number = [key](const RunRecord& run) { return run.number({key}); };
  const auto text = [number](const RunRecord& run) {
    const double value = number(run);
    return std::isnan(value) ? "" : count_text(value);
  };
  return {std::move(name), text, [number](const RunRecord& run) { return std::vector{number(run)}; }};
}

Fact number(std::string name, const char* key) {
  const auto value = [key](const RunRecord& run) { return run.number({key}); };
  const auto text = [value](const RunRecord& run) { return std::isnan(value(run)) ? "" : number_text(value(run)); };
  return {std::move(name), text, [value](const RunRecord& run) { return std::vector{value(run)}; }};
}

Fact estimate(std::string name, const char* outer, const char* mean, const char* se) {
  const auto value = [=](const RunRecord& run) { return run.number({outer, mean}); };
  const auto text = [=](const RunRecord& run) {
    return std::isnan(value(run)) ? "" : estimate_text({value(run), run.number({outer, se})});
  };
  return {std::move(name), text, [value](const RunRecord& run) { return std::vector{value(run)}; }};
}

Fact list(std::string name, std::function<const Json*(const RunRecord&)> find) {
  const auto numbers = [find](const RunRecord& run) {
    std::vector<double> values;
    if (const Json* found = find(run); found && found->is_array())
      for (const Json& value : *found) values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    return values;
  };
  return {std::move(name), [find](const RunRecord& run) { return numbers_text(find(run)); }, numbers};
}

Fact duration() {
  const auto seconds = [](const RunRecord& run) { return run.number({"seconds"}); };
  return {"duration",
          [seconds](const RunRecord& run) { return std::isnan(seconds(run)) ? "" : duration_text(seconds(run)); }};
}

Fact seed() {
  return {"seed", [](const RunRecord& run) { return run.setting("seed"); }};
}

std::string kernel_text(const RunRecord& run) {
  const std::string kernel = run.setting("kernel"), steps = run.setting("steps"), leapfrog = run.setting("leapfrog");
  if (kernel.empty()) return "";
  return fmt::format("{}, {} steps{}", kernel, steps,
                     kernel == "hmc" && !leapfrog.empty() ? fmt::format(" of {} leapfrog steps", leapfrog) : "");
}

std::string iterations_text(const RunRecord& run) {
  const double made = run.iterations_made(), asked = run.iterations_asked();
  if (std::isnan(made)) return "";
  const std::string text = count_text(made);
  return made < asked ? fmt::format("{} of {}", text, count_text(asked)) : text;
}

void add_ending(std::vector<Fact>& facts) {
  facts.push_back(count("non-finite proposals", "rejected_nonfinite"));
  facts.push_back(count("draws outside the support", "dropped_draws"));
  facts.push_back(duration());
  facts.push_back(entry("machine", "machine"));
  facts.push_back(entry("device", "device"));
  facts.push_back(entry("hone version", "hone_version"));
}

std::vector<Fact> toy_facts() {
  std::vector<Fact> facts = {entry("target", "target"),
                             entry("q", "family"),
                             entry("objective", "objective"),
                             {"kernel", kernel_text},
                             seed(),
                             {"iterations", iterations_text},
                             estimate("VCD", "vcd", "mean", "se"),
                             estimate("ELBO, that is −KL(q ‖ p)", "elbo", "mean", "se"),
                             list("means of q", [](auto& run) { return run.find({"mean"}); }),
                             list("standard deviations of q", [](auto& run) { return run.find({"sd"}); }),
                             list("weights of q", [](auto& run) { return run.find({"weights"}); }),
                             number("acceptance", "acceptance"),
                             number("step size", "step_size")};
  add_ending(facts);
  return facts;
}

std::string data_text(const RunRecord& run) {
  const std::string data = run.text({"data"}), likelihood = run.text({"likelihood"});
  const std::string bits = likelihood.empty() || likelihood == "bernoulli" ? run.text({"binarization"}) : "";
  const double size = run.number({"training_data"});
  return data + (bits.empty() ? "" : ", " + bits) +
         (std::isnan(size) ? "" : fmt::format("; {} to train on", count_text(size)));
}

std::string evaluation_text(const RunRecord& run) {
  const double points = run.number({"test_log_likelihood", "points"}),
               samples = run.number({"test_log_likelihood", "samples"}),
               iteration = run.number({"test_log_likelihood", "iteration"});
  if (std::isnan(points) || std::isnan(samples)) return "";
  return fmt::format("{} data, {} draws from each proposal{}", count_text(points), count_text(samples),
                     std::isnan(iteration) || iteration == run.number({"iterations"})
                         ? ""
                         : fmt::format(", at iteration {}", count_text(iteration)));
}

Fact best_validation() {
  const auto value = [](const RunRecord& run) { return run.number({"best", "validation_log_likelihood"}); };
  const auto text = [value](const RunRecord& run) {
    if (std::isnan(value(run))) return std::string();
    return fmt::format("{} at iteration {}", number_text(value(run)), count_text(run.number({"best", "iteration"})));
  };
  return {"best validation log-likelihood", text, [value](const RunRecord& run) { return std::vector{value(run)}; }};
}

std::vector<Fact> train_facts() {
  std::vector<Fact> facts = {
      {"model", [](const RunRecord& run) { return model_in_words(run.text({"model"}), run.text({"likelihood"})); }},
      {"data", data_text},
      entry("objective", "objective"),
      {"kernel", kernel_text},
      {"q(z | x)", [](const RunRecord& run) { return run.text({"family"}) == "diagonal" ? "" : run.text({"family"}); }},
      number("latent dimension", "latent"),
      seed(),
      {"iterations", iterations_text},
      estimate("ELBO, last report interval", "elbo", "mean", "se"),
      estimate("VCD, last report interval", "vcd", "mean", "se"),
      best_validation(),
      estimate("test log-likelihood, mixture of proposals", "test_log_likelihood", "mixture", "mixture_se"),
      estimate("… chosen on a pilot", "test_log_likelihood", "pilot", "pilot_se"),
      estimate("… best of three, the paper's measure", "test_log_likelihood", "value", "se"),
      {"… annealed importance sampling",
       [](const RunRecord& run) {
         const double mean = run.number({"test_log_likelihood", "ais", "log_likelihood"});
         return std::isnan(mean) ? "" : estimate_text({mean, run.number({"test_log_likelihood", "ais", "se"})});
       }},
      list("… by each proposal",
           [](auto& run) {
             return run.find({"test_log_likelihood", "proposals"});
           }),
      list("effective samples of each",
           [](auto& run) {
             return run.find({"test_log_likelihood", "effective_samples"});
           }),
      {"evaluated on", evaluation_text},
      estimate("test log-likelihood of the best model", "best_test_log_likelihood", "mixture", "mixture_se"),
      number("acceptance", "acceptance"),
      number("step size", "step_size"),
      number("µs per iteration", "us_per_iteration"),
      {"engine", [](const RunRecord& run) {
         const std::string engine = run.text({"engine"});
         const double threads = run.number({"threads"});
         return engine.empty() ? ""
                               : fmt::format("{}, {} thread{}, precision {}", engine, number_text(threads),
                                             threads == 1 ? "" : "s", run.text({"precision"}));
       }}};
  add_ending(facts);
  return facts;
}

Fact of_chains(std::string name, const char* key) {
  const auto value = [key](const RunRecord& run) { return run.number({"checks", "chains", key}); };
  const auto text = [value](const RunRecord& run) { return std::isnan(value(run)) ? "" : number_text(value(run)); };
  return {std::move(name), text, [value](const RunRecord& run) { return std::vector{value(run)}; }};
}

std::vector<Fact> fit_facts() {
  std::vector<Fact> facts = {
      entry("verdict", "verdict"),
      entry("model", "model"),
      entry("data", "data"),
      number("dimension", "dimension"),
      entry("q", "family"),
      entry("objective", "objective"),
      {"seed", [](const RunRecord& run) { return number_text(run.number({"seed"})); }},
      count("draws", "draws"),
      count("HMC steps per chain", "steps"),
      {"VCD", vcd_text},
      number("k-hat", "k_hat"),
      number("p-value of q = p", "p_value"),
      of_chains("nested R-hat", "nested_rhat"),
      of_chains("effective draws, worst mean", "effective"),
      of_chains("effective draws, worst tail", "tail_effective"),
      of_chains("drift, in standard errors", "drift"),
      {"diverged",
       [](const RunRecord& run) {
         const double diverged = run.number({"checks", "chains", "divergences"});
         return std::isnan(diverged) ? ""
                                     : fmt::format("{} of {} trajectories", count_text(diverged),
                                                   count_text(run.number({"checks", "chains", "proposals"})));
       }},
      of_chains("BFMI", "bfmi"),
      of_chains("acceptance", "acceptance"),
      {"interrupted",
       [](const RunRecord& run) {
         const Json* said = run.find({"interrupted"});
         return said && said->is_boolean() && said->get<bool>() ? "by Ctrl-C, before its end" : "";
       }},
      number("step size", "step_size"),
      count("gradients", "gradient_evaluations")};
  add_ending(facts);
  return facts;
}

// Mean ± standard deviation over the runs of each of the numbers.
std::string spread_text(const Fact& fact, const RunGroup& group) {
  std::vector<Moments> moments;
  for (const RunRecord* run : group.runs) {
    const std::vector<double> values = fact.numbers(*run);
    moments.resize(std::max(moments.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::isfinite(values[i])) moments[i].add(values[i]);
  }
  std::string text;
  for (const Moments& m : moments)
    if (m.count() > 0)
      text += (text.empty() ? "" : ", ") + (m.count() > 1 ? estimate_text({m.mean(), m.sd()}) : number_text(m.mean()));
  return text;
}

std::string cell_of(const Fact& fact, const RunGroup& group) {
  if (group.runs.size() == 1) return fact.text(group.first());
  if (fact.numbers) return spread_text(fact, group);
  std::set<std::string> texts;
  for (const RunRecord* run : group.runs) texts.insert(fact.text(*run));
  return texts.size() == 1 ? *texts.begin() : "various";
}

}  // namespace

std::vector<const RunRecord*> Section::runs() const {
  std::vector<const RunRecord*> all;
  for (const RunGroup& group : groups) all.insert(all.end(), group.runs.begin(), group.runs.end());
  return all;
}

std::vector<Section> sections_of(std::vector<RunRecord>& runs) {
  std::vector<Section> sections;
  for (RunRecord& run : runs) {
    const std::string problem = problem_of(run);
    auto found = std::ranges::find_if(sections, [&](auto& s) { return s.kind == run.kind && s.problem == problem; });
    if (found == sections.end()) found = sections.insert(sections.end(), {run.kind, problem, {}});
    found->groups.push_back({"", "", {&run}});
  }
  for (Section& section : sections) {
    if (section.groups.size() <= most_single) continue;
    std::vector<RunGroup> merged;
    for (RunGroup& group : section.groups) {
      const auto same = std::ranges::find_if(
          merged, [&](const RunGroup& other) { return without_seed(other.first()) == without_seed(group.first()); });
      if (same == merged.end())
        merged.push_back(std::move(group));
      else
        same->runs.push_back(group.runs.front());
    }
    section.groups = std::move(merged);
  }
  name_groups(sections);
  return sections;
}

std::vector<std::vector<std::string>> facts_table(const Section& section) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const RunGroup& group : section.groups) rows.front().push_back(group.label);
  const auto facts = section.kind == RunKind::toy     ? toy_facts()
                     : section.kind == RunKind::train ? train_facts()
                                                      : fit_facts();
  for (const Fact& fact : facts) {
    std::vector<std::string> row = {fact.name};
    for (const RunGroup& group : section.groups) row.push_back(cell_of(fact, group));
    if (std::ranges::all_of(row.begin() + 1, row.end(), &std::string::empty)) continue;
    for (std::string& cell : row)
      if (cell.empty()) cell = "–";
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::vector<std::string>> paper_rows(const Section& section) {
  std::vector<std::vector<std::string>> rows;
  for (const RunRecord* run : section.runs()) {
    const auto match = match_paper(*run);
    const double best = run->number({"test_log_likelihood", "value"});
    if (!match) continue;
    if (rows.empty())
      rows.push_back({"run", "best of three", "paper", "difference", "mixture of proposals", "test data", "iterations",
                      "other settings"});
    std::string differences;
    for (const std::string& text : match->differences) differences += (differences.empty() ? "" : "; ") + text;
    const auto figure = [&](const char* key) { return run->number({"test_log_likelihood", key}); };
    rows.push_back({run->name(), std::isnan(best) ? "not evaluated" : estimate_text({best, figure("se")}),
                    fixed_text(match->cell->log_likelihood, 2), number_text(best - match->cell->log_likelihood),
                    estimate_text({figure("mixture"), figure("mixture_se")}), count_text(figure("points")),
                    fmt::format("{} of {}", count_text(run->iterations_made()), count_text(paper_iterations)),
                    differences.empty() ? "none" : differences});
  }
  return rows;
}

SettingsTable settings_table(const Section& section) {
  std::vector<std::string> keys;  // in the order of the first file that has them
  for (const RunGroup& group : section.groups)
    for (const auto& [key, value] : group.first().config)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  SettingsTable table;
  for (const std::string& key : keys) {
    std::vector<std::string> row = {key};
    for (const RunGroup& group : section.groups)
      row.push_back(key == "seed" && group.runs.size() > 1 ? "various" : group.first().setting(key));
    if (std::ranges::all_of(row.begin() + 2, row.end(), [&](const std::string& cell) { return cell == row[1]; })) {
      table.common.emplace_back(key, row[1]);
      continue;
    }
    if (table.different.empty()) {
      table.different.push_back({"setting"});
      for (const RunGroup& group : section.groups) table.different.front().push_back(group.label);
    }
    table.different.push_back(std::move(row));
  }
  return table;
}

}  // namespace hone
