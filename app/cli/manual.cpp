// Man pages and shell completions, from the same tables of options that parse the command line.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "app/cli/commands.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) commands.push_back(command);
  return commands;
}

std::string full_name(const CLI::App& app, char between) {
  return app.get_parent() ? full_name(*app.get_parent(), between) + between + app.get_name() : app.get_name();
}

bool is_flag(const CLI::Option& option) { return option.get_type_size() == 0; }

std::string takes(const CLI::Option& option) {
  if (!option.get_option_text().empty()) return option.get_option_text();
  return is_flag(option) ? "" : option.get_type_name();
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Text for roff: a line must not begin with a dot or an apostrophe, and hyphens of options stay hyphens.
std::string roff(const std::string& text) {
  std::string out;
  bool start = true;
  for (const char c : text) {
    if (start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    start = c == '\n';
  }
  return out;
}

// What follows a page's options: paragraphs, and keys with their explanations, which are indented deeper.
std::string notes(const std::string& footer) {
  std::string text;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t indent = line.size() - words.size();
    text += words.empty() ? "" : indent == 0 ? ".PP\n" : indent < 6 ? ".TP\n.B " : "";
    if (!words.empty()) text += roff(words) + "\n";
  }
  return text;
}

std::string man_page(const CLI::App& app, const std::string& version) {
  std::string name = full_name(app, '-');
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"hone {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", name,
                                 version, roff(name), roff(app.get_description()));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", roff(full_name(app, ' ')));
  const std::vector<const CLI::App*> commands = commands_of(app);
  if (!commands.empty()) text += "COMMAND\n";
  std::string arguments, options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const std::string what = takes(*option),
                      entry = fmt::format(".I {}\n{}\n", roff(what), roff(option->get_description()));
    if (option->get_positional()) {
      text += fmt::format("{}\n", roff(what));
      arguments += ".TP\n" + entry;
      continue;
    }
    options += fmt::format(".TP\n.B {} \n", roff(fmt::format("{}", fmt::join(names_of(*option), ", "))));
    options.erase(options.size() - 2, 1);
    options += (what.empty() ? "" : "(" + roff(what) + ") ") + roff(option->get_description()) + "\n";
  }
  text += "[OPTIONS]\n";
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands)
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(full_name(*command, '-')), roff(command->get_description()));
  text += ".SH OPTIONS\n" + options;
  if (!app.get_footer().empty()) text += ".SH NOTES\n" + notes(app.get_footer());
  return text +
         ".SH EXIT STATUS\n0: done. 1: failed. 2: bad input; nothing was written. 130, 138, 143: "
         "stopped by Ctrl-C, SIGUSR1 or SIGTERM." +
         (app.get_name() == "check"       ? " 10: use-refined. 11: trust-neither.\n"
          : app.get_name() == "reproduce" ? " 142: stopped by --stop-after.\n"
                                          : "\n");
}

// One line per command: its words, then what may follow.
void add_words(const CLI::App& app, std::string& cases) {
  std::string words;
  for (const CLI::App* command : commands_of(app)) words += command->get_name() + " ";
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && !option->get_group().empty())
      for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  if (!words.empty()) words.pop_back();
  cases += fmt::format("    '{}') words='{}' ;;\n", full_name(app, ' '), words);
  for (const CLI::App* command : commands_of(app)) add_words(*command, cases);
}

std::string bash_completion(const CLI::App& program) {
  std::string cases;
  add_words(program, cases);
  return "# Completion of hone for bash.\n_hone() {\n  local word command=hone words candidate i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n    word=${COMP_WORDS[i]}\n    candidate=\"$command $word\"\n"
         "    _hone_words \"$candidate\" && command=$candidate\n  done\n  _hone_words \"$command\"\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
         "# Sets `words` to what may follow a command; fails if there is no such command.\n_hone_words() {\n"
         "  case $1 in\n" +
         cases + "    *) return 1 ;;\n  esac\n}\ncomplete -o default -F _hone hone\n";
}

std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c == '\n' ? ' ' : c;
  }
  return out;
}

void add_zsh(const CLI::App& app, std::string& text) {
  text += fmt::format("_{}() {{\n", full_name(app, '_'));
  const std::vector<const CLI::App*> commands = commands_of(app);
  text += "  _arguments -s";
  if (!commands.empty()) text += " -C";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      text += fmt::format(" \\\n    '{}--{}[{}]{}'", option->get_expected_max() > 1 ? "*" : "", name,
                          zsh_quoted(option->get_description()),
                          is_flag(*option) ? "" : ":" + zsh_quoted(takes(*option)) + ":_files");
  }
  if (commands.empty()) {
    text += " \\\n    '*:file:_files'\n}\n";
    return;
  }
  text +=
      " \\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command)\n      local -a "
      "commands=(";
  for (const CLI::App* command : commands)
    text += fmt::format("\n        '{}:{}'", command->get_name(), zsh_quoted(command->get_description()));
  text += fmt::format(
      ")\n      _describe command commands ;;\n    argument) (( $+functions[_{0}_$words[1]] )) && _{0}_$words[1] ;;\n"
      "  esac\n}}\n",
      full_name(app, '_'));
  for (const CLI::App* command : commands) add_zsh(*command, text);
}

void write_pages(const CLI::App& app, const fs::path& folder, const std::string& version) {
  write_file(folder / (full_name(app, '-') + ".1"), man_page(app, version));
  for (const CLI::App* command : commands_of(app)) write_pages(*command, folder, version);
}

}  // namespace

void add_manual_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("manual", "Write the man pages and the completions of bash and zsh into a folder");
  const auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "folder for man1/, bash/hone and zsh/_hone")->required()->option_text("DIR");
  command->callback([&program, folder] {
    const fs::path to = *folder;
    std::error_code error;
    for (const char* part : {"man1", "bash", "zsh"}) {
      fs::create_directories(to / part, error);
      if (error) throw InputError(fmt::format("{}: cannot be made: {}", (to / part).string(), error.message()));
    }
    write_pages(program, to / "man1", HONE_VERSION);
    write_file(to / "bash" / "hone", bash_completion(program));
    std::string zsh = "#compdef hone\n# Completion of hone for zsh.\n";
    add_zsh(program, zsh);
    write_file(to / "zsh" / "_hone", zsh + "_hone \"$@\"\n");
  });
}

}  // namespace hone
