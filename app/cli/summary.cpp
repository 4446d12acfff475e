#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/judgement.hpp"
#include "app/run/fit_table.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/progress.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct SummaryCommand {
  std::string run_folder;
  ShowFlag show;
  bool json = false;

  void run() const {
    Json summary = read_fit_summary(run_folder);
    const StoredFindings stored = findings_in(summary, run_folder);  // says what is wrong with it
    if (json) {
      const FitTable table = fit_table(summary, show.values());
      if (!show.text.empty()) {
        Json chosen = Json::object();
        for (const FitTable::Line& line : table.lines) chosen[line.name] = summary["parameters"][line.name];
        summary["parameters"] = chosen;
      }
      fmt::print("{}\n", summary.dump(2));
      return;
    }
    print_fit(summary, show.values());
    print_judgement(stored_judgement(summary), stored.findings);
  }
};

}  // namespace

void print_fit(const Json& summary, const ShownValues& show) {
  const int width = terminal_width(stdout);
  fmt::print("{}\n", text_of(fit_table(summary, show), width));
  const auto word = [&](const char* key) { return summary.value(key, std::string("?")); };
  fmt::print(
      "{}",
      wrapped("",
              fmt::format("q: {}, by {}; right of the bar: {} chains of {} HMC steps{}, without their burn-in",
                          word("family"), word("objective"), summary.value("chains_run", 0), summary.value("steps", 0),
                          summary.value("adapted_coordinates", false) ? " in bent coordinates" : ""),
              width));
  fmt::print("{} gradients in {}\n\n", summary.value("gradient_evaluations", std::int64_t{0}),
             duration_text(summary.value("seconds", 0.0)));
}

std::vector<std::string> ShowFlag::names() const {
  std::vector<std::string> result;
  std::string word;
  int depth = 0;  // the comma of theta[1,2] does not separate
  for (const char c : text + ",") {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) {
      if (c != ' ') word += c;
      continue;
    }
    if (word.empty()) throw InputError(fmt::format("--show '{}': expected names with commas between them", text));
    result.push_back(std::move(word));
    word.clear();
  }
  return result;
}

void ShowFlag::add_to(CLI::App& command) {
  command.add_option("--show", text, "the variables or values that the table shows: mu,theta,phi[2] [short ones]")
      ->option_text("NAMES");
}

void add_summary_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("summary", "Print the table and the verdict of a fit again");
  const auto state = std::make_shared<SummaryCommand>();
  command->add_option("run", state->run_folder, "folder of a 'hone fit'")->required()->option_text("RUN");
  state->show.add_to(*command);
  command->add_flag("--json", state->json, "print summary.json, with --show only these parameters of it");
  command->footer("Example: hone summary runs/schools --show mu,tau");
  command->callback([state] { state->run(); });
}

}  // namespace hone
