#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/ranks.hpp"
#include "app/run/evaluate.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/base/statistics.hpp"

namespace hone {
namespace {

struct EvalCommand {
  std::string folder, data_dir;
  std::vector<int> proposals = {1, 2, 3};
  EvaluateOptions options;
  EvaluationConfig importance;
  AnnealingOptions annealing;
  int points = 0;
  bool quiet = false, json = false, ais = false, ais_only = false;

  void run();
  void choose(const CLI::App& command);
  void print_table(const RunEvaluation& evaluation) const;
  void run_group(const std::vector<std::filesystem::path>& folders) const;
};

// A line, or as many as the terminal's width takes.
void print_line(const std::string& indent, const std::string& text) {
  fmt::print("{}", wrapped(indent, text, terminal_width(stdout)));
}

void print_row(const std::string& name, const Estimate& value, const std::string& rest) {
  const std::string error = std::isnan(value.se) ? "" : fmt::format("± {:.3f}", value.se);
  fmt::print("{}",
             wrapped(fmt::format("  {:<34}{:>11.3f} {:<10}", name, value.mean, error), rest, terminal_width(stdout)));
}

void print_importance(const EvaluationSummary& s, const EvaluationConfig& config) {
  constexpr const char* names[] = {"1  q, widened", "2  chain's mean, q's sd, widened",
                                   "3  chain's mean and sd, widened"};
  const auto effective = [](double samples) {
    const std::string count = fmt::format("{:.0f}", samples);
    return count + (count == "1" ? " effective sample" : " effective samples");
  };
  for (int j = 0; j < proposal_count; ++j)
    if (config.proposals[j]) print_row(names[j], s.proposal[j], effective(s.effective_samples[j]));
  print_row("best of these for each datum", s.best, "the paper's measure; not a lower bound");
  print_row("chosen on a pilot, fresh draws", s.pilot, "a lower bound in expectation");
  print_row("equal mixture of these", s.mixture,
            "a lower bound in expectation; " + effective(s.mixture_effective_samples));
  if (s.exact) print_row("exact", *s.exact, "");
  if (s.points_without_weight > 0)
    print_line("  ", fmt::format("at {} data no draw has any weight: their log-likelihood counts as −∞",
                                 s.points_without_weight));
}

void print_annealing(const RunAnnealing& a) {
  const AnnealingSummary& s = a.summary;
  const std::string error = std::isnan(s.chain_se) ? "" : fmt::format("; ± {:.3f} from the chains", s.chain_se);
  print_row("annealed, from the prior", s.log_likelihood, "a lower bound in expectation" + error);
  print_line("    ", fmt::format("{} temperatures, {} chains per datum ({:.1f} effective), {:.0f} % accepted; {}",
                                 a.config.steps, a.config.chains, s.effective_chains, 100 * s.acceptance,
                                 duration_text(a.seconds)));
  if (s.points_without_weight > 0)
    print_line("    ", fmt::format("at {} data no chain has any weight: their log-likelihood counts as −∞",
                                   s.points_without_weight));
  if (s.rejected_nonfinite > 0)
    print_line("    ", fmt::format("{} proposals were not finite and were rejected", s.rejected_nonfinite));
  if (!a.check) return;
  const auto range = [](const Estimate& e) {
    return std::isnan(e.se) ? fmt::format("{:.3f}", e.mean) : fmt::format("{:.3f} ± {:.3f}", e.mean, e.se);
  };
  print_line("    ", fmt::format("on {} data simulated from the model: at least {:.3f}, at most {:.3f}; gap {}",
                                 a.check->points, a.check->lower.mean, a.check->upper.mean, range(a.check->gap)));
}

void EvalCommand::print_table(const RunEvaluation& e) const {
  print_line("", fmt::format("{} on {}, {} objective, after {} iterations", e.model, e.data, e.objective, e.iteration));
  print_line("", fmt::format("{} log-likelihood per datum: {} data{}; {}", e.split, e.points,
                             e.config ? fmt::format(", {} draws per proposal", e.config->samples) : "",
                             e.points > 1 ? "± standard error over data" : "no standard error from one point"));
  if (e.summary) print_importance(*e.summary, *e.config);
  if (e.annealing) print_annealing(*e.annealing);
}

// All runs of hone train --seeds: a table or an entry of a list for each, then means over the runs.
void EvalCommand::run_group(const std::vector<std::filesystem::path>& folders) const {
  Moments best, mixture, annealed;
  std::string list, not_written;
  for (const auto& run : folders) {
    const RunEvaluation e = evaluate_run(run, options);
    if (e.summary) best.add(e.summary->best.mean), mixture.add(e.summary->mixture.mean);
    if (e.annealing) annealed.add(e.annealing->summary.log_likelihood.mean);
    list += (list.empty() ? "[" : ",") + e.json;
    if (!e.not_written.empty()) not_written = e.not_written;
    if (json) continue;
    fmt::print("{}:\n", run.string());
    print_table(e);
  }
  if (json) fmt::print("{}]\n", list);
  if (!json && folders.size() > 1) {
    fmt::print("over {} seeds, mean ± standard deviation\n", folders.size());
    const auto row = [](const std::string& name, const Moments& m) {
      if (m.count() > 0) fmt::print("  {:<34}{:>11.3f} ± {:.3f}\n", name, m.mean(), m.sd());
    };
    row("best proposal for each datum", best);
    row("equal mixture of proposals", mixture);
    row("annealed, from the prior", annealed);
  }
  if (!not_written.empty()) throw Error("not all results above are in their folders: " + not_written);
}

// Refuses flags that would have no effect.
void EvalCommand::choose(const CLI::App& command) {
  if (!ais && !ais_only)
    for (const char* flag : {"--ais-steps", "--ais-chains", "--ais-check"})
      if (command.count(flag) > 0) throw InputError(fmt::format("{} needs --ais or --ais-only", flag));
  if (ais_only)
    for (const char* flag : {"--samples", "--proposals"})
      if (command.count(flag) > 0) throw InputError(fmt::format("{} has no effect with --ais-only", flag));
}

void EvalCommand::run() {
  importance.proposals = {};
  for (const int proposal : proposals) {
    if (proposal < 1 || proposal > proposal_count)
      throw InputError(fmt::format("--proposals: '{}' is not allowed; expected some of 1,2,3", proposal));
    importance.proposals[proposal - 1] = true;
  }
  options.importance = importance;
  if (ais_only) options.importance.reset();
  if (ais || ais_only) options.annealing = annealing;
  options.data_dir = data_dir;
  options.lead = lead;
  if (points > 0) options.points = points;
  options.warn = say_over_progress;
  if (!quiet) {
    options.progress = Progress::style_for(stderr, false);
    options.say = options.warn;
  }
  if (const auto folders = seed_folders(folder); !folders.empty()) return run_group(folders);
  const RunEvaluation evaluation = evaluate_run(folder, options);
  if (json)
    fmt::print("{}", evaluation.json);
  else
    print_table(evaluation);
  if (!evaluation.not_written.empty())
    throw Error("the results above are not in the folder: " + evaluation.not_written);
}

}  // namespace

void add_eval_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("eval", "Test log-likelihood of a trained model, by importance sampling and annealing");
  const auto state = std::make_shared<EvalCommand>();
  EvaluateOptions& options = state->options;
  options.threads = default_threads();
  command
      ->add_option("run", state->folder,
                   "run folder of hone train, or folder of its --seeds; results are added to summary.json")
      ->required()
      ->option_text("RUN");
  command->add_option("--samples", state->importance.samples, "draws S per proposal [20000]")
      ->check(integer(10, 10'000'000))
      ->option_text("S");
  command->add_option("--points", state->points, "evaluate only the first n data [all]")
      ->check(integer(1, 1'000'000'000))
      ->option_text("n");
  command->add_option("--proposals", state->proposals, "which of the three proposals to use [all]")
      ->delimiter(',')
      ->option_text("1,2,3");
  command->add_flag("--ais", state->ais, "also run annealed importance sampling: a lower bound that needs no proposal");
  command
      ->add_flag("--ais-only", state->ais_only,
                 "run only annealed importance sampling; other results in summary.json stay")
      ->excludes("--ais");
  const AnnealingConfig& annealed = state->annealing.config;
  command
      ->add_option("--ais-steps", state->annealing.config.steps,
                   fmt::format("temperatures K from the prior to the posterior [{}]", annealed.steps))
      ->check(integer(1, 1'000'000))
      ->option_text("K");
  command
      ->add_option("--ais-chains", state->annealing.config.chains,
                   fmt::format("chains per datum [{}]", annealed.chains))
      ->check(integer(1, 10'000))
      ->option_text("C");
  command
      ->add_option("--ais-check", state->annealing.check,
                   "bound what annealing misses: lower and upper bounds on n data simulated from the model")
      ->check(integer(1, 1'000'000))
      ->option_text("n");
  command->add_option("--split", options.split, "train, validation or test [test]")->option_text("NAME");
  command->add_flag_callback(
      "--best", [state] { state->options.which = WhichModel::best; },
      "the best model by validation data instead of the last (best.safetensors)");
  command->add_option("--threads", options.threads, "threads; results do not depend on them [all cores]")
      ->check(integer(1, 1024))
      ->option_text("n");
  command->add_option("--data-dir", state->data_dir, "folder with one folder per data set; searched first")
      ->option_text("DIR");
  command->add_flag("--quiet", state->quiet, "print only the result");
  command->add_flag("--json", state->json, "print the results as JSON instead of the table");
  command->footer("Several processes share the data, with the same results: mpirun -n 4 hone eval … (docs/cluster.md)");
  command->callback([state, command] {
    state->choose(*command);
    state->run();
  });
}

}  // namespace hone
