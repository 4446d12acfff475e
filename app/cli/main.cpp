#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <span>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/formatter.hpp"
#include "app/cli/ranks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/spelling.hpp"

namespace {

using hone::bad_input;

// The subcommand being parsed, for the hint on --help.
const CLI::App& innermost(const CLI::App& program) {
  const auto used = program.get_subcommands();
  return used.empty() ? program : innermost(*used.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

// Flags and CmdStan's words ("num_samples=1000") that Stan's users type by habit, and what `hone fit` has
// instead.
std::string habit(const CLI::App& app, std::string word) {
  static const std::map<std::string, std::string> answers = {
      {"output", "hone writes a folder: --out DIR"},
      {"data", "the data are an option of hone: --data FILE.json"},
      {"chains",
       "hone starts its own chains from draws of q: --draws N says how many draws are kept, --threads N how many "
       "threads work"},
      {"method",
       "hone fit has one method: it fits q, refines its draws by MCMC, and judges both; --objective NAME says how q is "
       "fitted"},
      {"iter",
       "hone runs many short chains from draws of q until their means are exact enough: --error N says how exact, "
       "--budget N how much work that may cost, --draws N how many draws are kept"},
      {"warmup", "hone's chains start from q and need no warm-up; --budget N limits the work"},
      {"init", "hone searches for its own starting points; --starts N says how many"},
      {"adapt_delta", "hone calls it --target-accept N"},
      {"max_treedepth",
       "hone has no trees: it tunes how long its trajectories are; --target-accept N makes their steps smaller"},
      {"thin", "hone thins by itself what it writes: --draws N says how many draws are kept"},
      {"refresh", "hone shows one line of progress; --quiet hides it"}};
  static const std::map<std::string, std::string> spellings = {{"num_chains", "chains"},
                                                               {"parallel_chains", "chains"},
                                                               {"cores", "chains"},
                                                               {"num_samples", "iter"},
                                                               {"iter_sampling", "iter"},
                                                               {"num_warmup", "warmup"},
                                                               {"iter_warmup", "warmup"},
                                                               {"inits", "init"},
                                                               {"output_dir", "output"},
                                                               {"algorithm", "method"},
                                                               {"sample", "method"},
                                                               {"variational", "method"},
                                                               {"pathfinder", "method"},
                                                               {"optimize", "method"},
                                                               {"delta", "adapt_delta"},
                                                               {"adapt", "adapt_delta"},
                                                               {"max_depth", "max_treedepth"},
                                                               {"file", "data"}};
  if (app.get_name() != "fit") return {};
  word.erase(0, word.find_first_not_of('-'));
  std::ranges::replace(word, '-', '_');
  const auto spelling = spellings.find(word);
  const auto answer = answers.find(spelling == spellings.end() ? word : spelling->second);
  return answer == answers.end() ? "" : ": " + answer->second;
}

// The flags or subcommands that an unknown argument could mean.
std::string suggestion(const CLI::App& app, const std::string& argument) {
  const std::string known_habit = habit(app, argument.substr(0, argument.find('=')));
  if (!known_habit.empty()) return known_habit;
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  return hone::did_you_mean(argument.substr(0, argument.find('=')), known);
}

int usage_error(const CLI::App& app, const std::string& message) {
  fmt::print(stderr, "hone: {}\nSee '{} --help'.\n", message, full_name(app));
  return bad_input;
}

// The subcommand of this name; null if there is none.
const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// Refuses an option that is followed by another option instead of its value: the parser would take --resume in
// "--out --resume" for the value. `words` are those after the program's name; 0 if all is well.
int check_values(const CLI::App& program, std::span<char* const> words) {
  const CLI::App* app = &program;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "--") return 0;
    if (const CLI::App* command = subcommand(*app, word)) app = command;
    const CLI::Option* option = word.starts_with('-') ? app->get_option_no_throw(word) : nullptr;
    if (!option || option->get_items_expected_min() == 0 || i + 1 == words.size()) continue;
    const std::string next = words[++i];
    const bool dashes = next.starts_with("--");
    if (!dashes && !(next.starts_with('-') && app->get_option_no_throw(next))) continue;
    const bool can_join = dashes && word.starts_with("--");
    return usage_error(
        *app,
        fmt::format("{} needs a value, and {} follows{}", word, next,
                    can_join ? fmt::format("; a value that begins with dashes is written {}={}", word, next) : ""));
  }
  return 0;
}

bool wants_subcommand(const CLI::App& app) {
  return app.get_require_subcommand_min() > 0 && app.get_subcommands().empty();
}

// The help lists the subcommands. It goes to stderr, because this is an error.
int missing_subcommand(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  fmt::print(stderr, "{}\nhone: missing subcommand: '{}' needs one of {}\n",
             app.help(app.get_parent() ? full_name(*app.get_parent()) : ""), full_name(app), names);
  return bad_input;
}

void add_commands(CLI::App& program) {
  hone::add_fit_command(program);
  hone::add_check_command(program);
  hone::add_summary_command(program);
  hone::add_compare_command(program);
  hone::add_toy_command(program);
  hone::add_reproduce_command(program);
  hone::add_train_command(program);
  hone::add_eval_command(program);
  hone::add_encode_command(program);
  hone::add_refine_command(program);
  hone::add_reconstruct_command(program);
  hone::add_sample_command(program);
  hone::add_score_command(program);
  hone::add_export_command(program);
  hone::add_report_command(program);
  hone::add_data_command(program);
  hone::add_bench_command(program);
  hone::add_stan_command(program);
  hone::add_info_command(program);
  hone::add_manual_command(program);
}

int run(int argc, char** argv) {
  CLI::App program(
      "Variational inference sharpened by MCMC: fits an explicit q(z), refines its draws by a few MCMC "
      "steps, and feeds what the chain found back into q (the variational contrastive divergence).",
      "hone");
  program.formatter(std::make_shared<hone::PlainFormatter>());  // subcommands inherit it, and the help flag
  program.set_help_flag("-h,--help", "print this help and exit");
  program.set_version_flag("--version", HONE_VERSION, "print the version and exit");
  program.require_subcommand(1);
  add_commands(program);
  if (argc == 1) {
    fmt::print("{}", program.help());
    return 0;
  }
  try {
    if (const int code = check_values(program, {argv + 1, argv + argc})) return code;
    program.parse(argc, argv);
    if (std::fflush(stdout) != 0) throw hone::Error("cannot write to standard output");
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    // Report an unknown argument first, even if the parser complains about a missing one.
    const std::vector<std::string> unexpected = program.remaining(true);
    if (unexpected.empty() && wants_subcommand(innermost(program))) return missing_subcommand(innermost(program));
    if (unexpected.empty()) return usage_error(innermost(program), hone::complaint(innermost(program), error));
    return usage_error(innermost(program), fmt::format("unknown argument '{}'{}", unexpected.front(),
                                                       suggestion(innermost(program), unexpected.front())));
  } catch (const hone::Ended& ended) {
    if (std::fflush(stdout) != 0) fmt::print(stderr, "hone: cannot write to standard output\n");
    return ended.code;
  } catch (const hone::InputError& error) {
    fmt::print(stderr, "hone: {}\n", error.what());
    return bad_input;
  } catch (const std::filesystem::filesystem_error& error) {
    fmt::print(stderr, "hone: {}: {}\n", error.path1().string(), error.code().message());
    return bad_input;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "hone: not enough memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "hone: {}\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool silent = std::ranges::count(std::span(argv, argv + argc), std::string("--quiet")) > 0;
  const hone::Speech asked = silent ? hone::Speech::errors : hone::Speech::usual;
  try {
    return hone::run_on_ranks(argc > 1 ? argv[1] : "--help", asked, [&](hone::Speech speech) {
      std::vector<char*> words(argv, argv + argc);
      std::string quiet = "--quiet";
      if (speech == hone::Speech::errors) words.push_back(quiet.data());
      return run(static_cast<int>(words.size()), words.data());
    });
  } catch (const hone::InputError& error) {
    fmt::print(stderr, "hone: {}\n", error.what());
    return bad_input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "hone: {}\n", error.what());
    return 1;
  }
}
