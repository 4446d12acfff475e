#include "hone/target/stan.hpp"

#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/signals.hpp"

namespace hone {
namespace {

struct StanFlags {
  std::string wheel, model, data;
  bool quiet = false;
};

StanOptions options_of(const StanFlags& flags, const std::function<bool()>& stop) {
  StanOptions options;
  options.data = flags.data;
  options.stop = stop;
  options.progress = [&flags](const std::string& text) {
    if (!flags.quiet) fmt::print(stderr, "{}\n", text);
  };
  return options;
}

void install(const StanFlags& flags) {
  const auto folder = until_signal(
      [&](const std::function<bool()>& stop) { return install_stan(flags.wheel, options_of(flags, stop)); });
  fmt::print("{}\n", stan_in_use());
  if (!flags.quiet) fmt::print(stderr, "To remove it, delete {}.\n", folder.parent_path().string());
}

void compile(const StanFlags& flags) {
  const auto library = until_signal(
      [&](const std::function<bool()>& stop) { return compile_stan(flags.model, options_of(flags, stop)); });
  fmt::print("{}\n", library.string());
}

void add_install(CLI::App& stan, const std::shared_ptr<StanFlags>& flags) {
  CLI::App& command = *stan.add_subcommand(
      "install", "Install Stan's translator and headers into your cache, from the Python package httpstan");
  command.add_option("--wheel", flags->wheel, "the package as a file, where pip cannot reach it")->option_text("FILE");
  command.add_flag("--quiet", flags->quiet, "print only what is installed");
  command.footer(
      "Downloads 35 MB and takes about a minute; 0.5 GB on disk, most of it compiled headers (1 GB with g++). Needs "
      "python3 with pip, and a compiler: the one that CXX names, else clang++, else g++.\nExample: hone stan install "
      "&& hone fit model.stan --data data.json");
  command.callback([flags] { install(*flags); });
}

void add_compile(CLI::App& stan, const std::shared_ptr<StanFlags>& flags) {
  CLI::App& command =
      *stan.add_subcommand("compile", "Compile a Stan program unless it is in the cache, and print the library's path");
  command.add_option("model", flags->model, "the Stan program")->required()->option_text("MODEL.stan");
  command.add_option("--data", flags->data, "check that these data suit the program")->option_text("data.json");
  command.add_flag("--quiet", flags->quiet, "print only the path");
  command.footer("The library has BridgeStan's C interface, for nutpie, walnutpie and BridgeStan's clients too.");
  command.callback([flags] { compile(*flags); });
}

}  // namespace

void add_stan_command(CLI::App& program) {
  CLI::App& stan = *program.add_subcommand("stan", "Install Stan, and compile models for other tools");
  stan.require_subcommand(1);
  const auto flags = std::make_shared<StanFlags>();
  add_install(stan, flags);
  add_compile(stan, flags);
}

}  // namespace hone
