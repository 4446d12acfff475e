#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/use_flags.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct Command : UseFlags {
  EncodeOptions encode;

  void add_draws(CLI::App& command) {
    command.add_option("--draws", encode.draws, "refined draws per datum: z is (data, draws, latent) [1]")
        ->check(integer(1, 100'000))
        ->option_text("n");
    add_seed(command);
  }
};

}  // namespace

void add_encode_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("encode", "The latent z of data: means and sds of q, or refined draws");
  const auto state = std::make_shared<Command>();
  state->add(*command, DataArgument::required, "z (data, latent) as .npy or .csv");
  command->add_option("--sd", state->encode.sd, "also write the standard deviations of q, as .npy or .csv")
      ->option_text("FILE");
  command
      ->add_option("--refine", state->encode.refine,
                   "a draw of q per datum, refined by this many steps of the run's kernel, instead of q's mean")
      ->check(integer(1, 1'000'000))
      ->option_text("steps");
  state->add_draws(*command);
  command->get_option("--seed")->needs("--refine");
  command->callback([state] {
    state->run([&](const UseOptions& options) {
      if (!options.out.empty() && state->encode.sd == options.out)
        throw InputError(fmt::format("--out and --sd name the same file, {}", options.out.string()));
      const int count = encode_data(options, state->encode);
      return fmt::format("{}: z of {} data", options.out.string(), count);
    });
  });
}

void add_refine_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("refine", "Draws of z for each datum, refined by the run's kernel");
  const auto state = std::make_shared<Command>();
  state->encode.refine = 8;
  state->add(*command, DataArgument::required, "z (data, latent) as .npy or .csv");
  command->add_option("--steps", state->encode.refine, "steps of the run's kernel [8]")
      ->check(integer(1, 1'000'000))
      ->option_text("t");
  state->add_draws(*command);
  command->callback([state] {
    state->run([&](const UseOptions& options) {
      const int count = encode_data(options, state->encode);
      return fmt::format("{}: refined z of {} data", options.out.string(), count);
    });
  });
}

}  // namespace hone
