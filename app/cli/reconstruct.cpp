#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/use_flags.hpp"

namespace hone {

void add_reconstruct_command(CLI::App& program) {
  struct Command : UseFlags {
    int refine = 0;
  };
  CLI::App* command = program.add_subcommand("reconstruct", "Data as the model sees them: E[x | z] at the mean of q");
  const auto state = std::make_shared<Command>();
  state->add(*command, DataArgument::required, ".npy, .csv or, for images, .png");
  command
      ->add_option("--refine", state->refine, "at a draw of q refined by this many steps of the run's kernel instead")
      ->check(integer(1, 1'000'000))
      ->option_text("steps");
  state->add_seed(*command);
  command->get_option("--seed")->needs("--refine");
  command->callback([state] {
    state->run([&](const UseOptions& options) {
      const int count = reconstruct_data(options, state->refine);
      return fmt::format("{}: {} data reconstructed", options.out.string(), count);
    });
  });
}

}  // namespace hone
