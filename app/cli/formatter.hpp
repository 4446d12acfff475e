#pragma once

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/run/terminal.hpp"

namespace hone {

// Help without the parser's own marks: only what an option takes follows its name.
class PlainFormatter : public CLI::Formatter {
 public:
  PlainFormatter() { column_width(34); }
  // Wraps lines at the width of the terminal; elsewhere each option has one line.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string page = CLI::Formatter::make_help(app, std::move(name), mode);
    return ::isatty(STDOUT_FILENO) ? fitted_help(page, std::min(100, terminal_width(stdout))) : page;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string takes = option->get_option_text();
    if (takes.empty() && option->get_type_size() != 0) takes = option->get_type_name();
    if (takes.empty()) return "";
    return " " + takes +
           (option->get_expected_max() > 1 && !takes.ends_with("...") && option->get_option_text().empty() ? " ..."
                                                                                                           : "");
  }
};

}  // namespace hone
