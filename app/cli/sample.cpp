#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/use_flags.hpp"
#include "hone/base/error.hpp"

namespace hone {

void add_sample_command(CLI::App& program) {
  struct Command : UseFlags {
    SampleOptions sample;
    std::vector<int> between;
    bool mean = false;
  };
  CLI::App* command = program.add_subcommand("sample", "New data from a trained model");
  const auto state = std::make_shared<Command>();
  state->add(*command, DataArgument::optional, ".npy, .csv or, for images, .png");
  CLI::Option* count = command->add_option("-n,--count", state->sample.count, "how many [64]")
                           ->check(integer(1, 100'000'000))
                           ->option_text("n");
  command->add_flag("--mean", state->mean, "E[x | z] instead of draws x ~ p(x | z)");
  CLI::Option* z = command->add_option("--z", state->sample.z, "points (n, latent) in a file, instead of z ~ N(0, I)")
                       ->option_text("FILE")
                       ->excludes(count);
  command
      ->add_option("--between", state->between,
                   "n points on the line between the means of q of two data, which are counted from 0")
      ->delimiter(',')
      ->excludes(z)
      ->option_text("i,j");
  state->add_seed(*command);
  command->callback([state, command] {
    if (state->mean) state->sample.kind = Sampled::means;
    if (!state->between.empty()) {
      if (state->between.size() != 2) throw InputError("--between: expected two numbers of data, such as 3,17");
      state->sample.between = {state->between[0], state->between[1]};
    } else {
      for (const char* argument : {"data", "--points", "--binarization", "--header"})
        if (command->count(argument) > 0)
          throw InputError(
              fmt::format("{} has no effect without --between", argument == std::string("data") ? "DATA" : argument));
    }
    if (state->mean && command->count("--seed") > 0 && command->count("--z") + command->count("--between") > 0)
      throw InputError("--seed has no effect with --mean and --z or --between: nothing is drawn");
    state->run([&](const UseOptions& options) {
      const int made = sample_model(options, state->sample);
      return fmt::format("{}: {} data", options.out.string(), made);
    });
  });
}

}  // namespace hone
