#include "app/report/report.hpp"

#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"

namespace hone {
namespace {

struct ReportCommand {
  std::vector<std::string> folders;
  std::string out;

  void run() const {
    const ReportResult result = write_report({{folders.begin(), folders.end()}, out});
    for (const std::string& fault : result.faults) fmt::print(stderr, "hone: {}\n", fault);
    fmt::print("{}\n", result.page.string());
  }
};

}  // namespace

void add_report_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("report", "Write a page on one run, or compare several");
  const auto state = std::make_shared<ReportCommand>();
  command
      ->add_option(
          "run", state->folders,
          "folders of hone toy, hone train (also with --seeds) or hone fit; or one of hone reproduce, for all of it")
      ->required()
      ->option_text("RUN ...");
  command->add_option("--out", state->out, "the page to write [RUN/report.html for one folder, else report.html here]")
      ->option_text("FILE");
  command->footer("Example: hone report runs/lmf-kl runs/lmf-vcd --out comparison.html");
  command->callback([state] { state->run(); });
}

}  // namespace hone
