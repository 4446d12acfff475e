#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/cli/commands.hpp"
#include "hone/run/evaluate.hpp"

namespace hone {
namespace {

struct EvalCommand {
  std::string folder, data_dir;
  std::vector<int> proposals = {1, 2, 3};
  EvaluateOptions options;
  int points = 0;
  bool quiet = false, json = false;

  void run();
  void print_table(const RunEvaluation& evaluation) const;
};

void EvalCommand::print_table(const RunEvaluation& e) const {
  constexpr const char* names[] = {"1  q, widened", "2  chain's mean, q's sd, widened",
                                   "3  chain's mean and sd, widened"};
  const EvaluationSummary& s = e.summary;
  const auto row = [](const std::string& name, const Estimate& value, const std::string& rest) {
    const std::string error = std::isnan(value.se) ? "" : fmt::format("± {:.3f}", value.se);
    fmt::print("  {:<34}{:>11.3f} {:<10}{}\n", name, value.mean, error, rest);
  };
  const auto effective = [](double samples) { return fmt::format("{:.0f} effective samples", samples); };
  fmt::print("{} on {}, {} objective, after {} iterations\n", e.model, e.data, e.objective, e.iteration);
  fmt::print("{} log-likelihood a datum: {} data, {} draws of each proposal; {}\n", e.split, s.points,
             e.config.samples, s.points > 1 ? "± standard error over data" : "no standard error from one point");
  for (int j = 0; j < proposal_count; ++j)
    if (e.config.proposals[j]) row(names[j], s.proposal[j], effective(s.effective_samples[j]));
  row("best of these for each datum", s.best, "the paper's figure; no lower bound");
  row("chosen on a pilot, fresh draws", s.pilot, "a lower bound in the mean");
  row("equal mixture of these", s.mixture, "a lower bound in the mean; " + effective(s.mixture_effective_samples));
  if (s.exact) row("exact", *s.exact, "");
  if (s.points_without_weight > 0)
    fmt::print("  at {} data no draw has any weight, and their log-likelihood counts as −∞\n", s.points_without_weight);
}

void EvalCommand::run() {
  options.evaluation.proposals = {};
  for (const int proposal : proposals) {
    if (proposal < 1 || proposal > proposal_count)
      throw InputError(fmt::format("--proposals: '{}' is not allowed; expected some of 1,2,3", proposal));
    options.evaluation.proposals[proposal - 1] = true;
  }
  options.data_dir = data_dir;
  if (points > 0) options.evaluation.points = points;
  if (!quiet) {
    options.progress = Progress::style_for(stderr, false);
    options.say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  }
  const RunEvaluation evaluation = evaluate_run(folder, options);
  if (json)
    fmt::print("{}", evaluation.to_json());
  else
    print_table(evaluation);
}

}  // namespace

void add_eval_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Test log-likelihood of a trained model, by importance sampling");
  const auto state = std::make_shared<EvalCommand>();
  EvaluateOptions& options = state->options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command->add_option("run", state->folder, "run folder of hone train; its summary.json gets the figures")
      ->required()
      ->option_text("RUN");
  command->add_option("--samples", options.evaluation.samples, "draws S of each proposal")
      ->check(CLI::Range(10, 10'000'000))
      ->option_text("S [20000]");
  command->add_option("--points", state->points, "the first so many data")
      ->check(CLI::Range(1, 1'000'000'000))
      ->option_text("n [all]");
  command->add_option("--proposals", state->proposals, "which of the three proposals")
      ->delimiter(',')
      ->option_text("1,2,3");
  command->add_option("--split", options.split, "train, validation or test")->option_text("NAME [test]");
  command->add_option("--threads", options.threads, "threads; results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->option_text("n [all cores]");
  command->add_option("--data-dir", state->data_dir, "folder that holds one folder a data set; looked at first")
      ->option_text("DIR");
  command->add_flag("--quiet", state->quiet, "no progress, no remarks");
  command->add_flag("--json", state->json, "print the figures as JSON instead of the table");
  command->callback([state] { state->run(); });
}

}  // namespace hone
