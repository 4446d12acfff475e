#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/use_flags.hpp"
#include "app/run/unfinished_scores.hpp"
#include "hone/base/error.hpp"
#include "hone/base/statistics.hpp"

namespace hone {
namespace {

struct ScoreCommand : UseFlags {
  ScoreOptions score;
  std::string method = "importance";

  void choose(const CLI::App& command);
};

// Refuses flags that would have no effect.
void ScoreCommand::choose(const CLI::App& command) {
  score.method = method == "ais" ? ScoreMethod::annealing : ScoreMethod::importance;
  const auto refuse = [&](const char* flag, const char* needed) {
    if (command.count(flag) > 0) throw InputError(fmt::format("{} needs --method {}", flag, needed));
  };
  if (score.method == ScoreMethod::annealing) return refuse("--samples", "importance");
  refuse("--ais-steps", "ais");
  refuse("--ais-chains", "ais");
}

std::string table_of(std::vector<Score> scores, const std::string& file) {
  constexpr std::size_t shown = 10;
  Moments moments;
  for (const Score& score : scores) moments.add(score.log_likelihood);
  const Estimate mean = moments.estimate();
  std::string text = fmt::format("{}: {} data, mean log-likelihood {:.3f}", file, scores.size(), mean.mean);
  if (!std::isnan(mean.se)) text += fmt::format(" ± {:.3f}", mean.se);
  std::ranges::stable_sort(scores, {}, &Score::log_likelihood);
  scores.resize(std::min(shown, scores.size()));
  text += fmt::format("\nthe least likely:\n  {:>8}  {:>14}  {:>8}  {:>17}", "datum", "log-likelihood", "± error",
                      "effective samples");
  for (const Score& score : scores)
    text += fmt::format("\n  {:>8}  {:>14.3f}  {:>8.3f}  {:>17.1f}", score.datum, score.log_likelihood, score.error,
                        score.effective_samples);
  return text;
}

}  // namespace

void add_score_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("score", "The log-likelihood of each datum, with its error");
  const auto state = std::make_shared<ScoreCommand>();
  state->add(*command, DataArgument::required, "one row per datum as .csv or .npy");
  command->add_flag("--sort", state->score.sorted, "the least likely data first");
  command->add_flag("--resume", state->score.resume, "continue a command that was stopped or killed (FILE.unfinished)")
      ->needs("--out");
  command
      ->add_option("--method", state->method, "importance (sampling) or ais, annealed importance sampling [importance]")
      ->check(one_of({"importance", "ais"}))
      ->option_text("NAME");
  command
      ->add_option("--samples", state->score.importance.samples,
                   fmt::format("draws for each of the three proposals [{}]", state->score.importance.samples))
      ->check(integer(10, 10'000'000))
      ->option_text("S");
  command
      ->add_option("--ais-steps", state->score.annealing.steps,
                   fmt::format("temperatures from the prior to the posterior [{}]", state->score.annealing.steps))
      ->check(integer(1, 1'000'000))
      ->option_text("K");
  command
      ->add_option("--ais-chains", state->score.annealing.chains,
                   fmt::format("chains per datum; their spread gives the error [{}]", state->score.annealing.chains))
      ->check(integer(2, 10'000))
      ->option_text("C");
  command->callback([state, command] {
    state->choose(*command);
    state->unfinished = unfinished_scores;
    state->run(
        [&](const UseOptions& options) { return table_of(score_data(options, state->score), options.out.string()); });
  });
}

}  // namespace hone
