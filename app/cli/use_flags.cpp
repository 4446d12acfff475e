#include "app/cli/use_flags.hpp"

#include <fmt/format.h>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/signals.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"

namespace hone {

void UseFlags::add(CLI::App& command, DataArgument data, const std::string& formats) {
  options.threads = default_threads();
  command.add_option("run", options.run, "run folder of hone train")->required()->option_text("RUN");
  CLI::Option* argument =
      command.add_option("data", options.data, "a file of data, or train, validation or test: those of the run");
  argument->option_text(data == DataArgument::required ? "DATA" : "DATA [test]");
  if (data == DataArgument::required) argument->required();
  command.add_option("--out", out, fmt::format("write {}; without it, CSV goes to standard output", formats))
      ->option_text("FILE");
  command.add_option("--points", points, "use only the first n data [all]")
      ->check(integer(1, 1'000'000'000))
      ->option_text("n");
  command
      .add_option("--binarization", options.binarization,
                  "how the values of a file become bits: none, threshold or stochastic [as in training]")
      ->check(one_of({"none", "threshold", "stochastic"}))
      ->option_text("NAME");
  command
      .add_option("--header", options.header,
                  "whether a .csv file begins with a line of names: auto, yes or no [as in training]")
      ->check(one_of({"auto", "yes", "no"}))
      ->option_text("NAME");
  command.add_option("--data-dir", options.data_dir, "folder with one folder per data set; searched first")
      ->option_text("DIR");
  command.add_flag_callback(
      "--best", [this] { options.which = WhichModel::best; },
      "the best model by validation data instead of the last (best.safetensors)");
  command.add_option("--threads", options.threads, "threads; results do not depend on them [all cores]")
      ->check(integer(1, 1024))
      ->option_text("n");
  command.add_flag("--quiet", quiet, "print no progress");
}

void UseFlags::add_seed(CLI::App& command) {
  command.add_option("--seed", options.seed, "seed of the random numbers [1]")
      ->check(integer(0, 1'000'000'000'000'000'000))
      ->option_text("n");
}

void UseFlags::run(const std::function<std::string(const UseOptions&)>& work) {
  options.out = out;
  if (points > 0) options.points = points;
  options.stop = &stop_signal;
  options.say = say_over_progress;
  if (!quiet) options.progress = Progress::style_for(stderr, false);
  const SignalNote note;
  try {
    const std::string line = work(options);
    if (!quiet && !out.empty()) fmt::print("{}\n", line);
  } catch (const Stopped&) {
    const bool kept = unfinished && !out.empty() && std::filesystem::exists(unfinished(out));
    if (!quiet)
      fmt::print(stderr, "stopped by a signal; {}\n",
                 kept ? "the same command with --resume continues" : "nothing was written");
    throw Ended{128 + stop_signal};
  }
}

}  // namespace hone
