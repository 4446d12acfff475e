#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/run/fit_table.hpp"
#include "hone/assess/verdict.hpp"

namespace hone {

// Prints the verdict and the numbers behind it, in lines no wider than the terminal.
void print_judgement(const Judgement& judgement, const Findings& findings);

// Prints the table of a fit, and how it was made.
void print_fit(const Json& summary, const ShownValues& show);

// --show NAMES
struct ShowFlag {
  std::string text;
  void add_to(CLI::App& command);
  std::vector<std::string> names() const;  // InputError if an entry of the list is empty
  ShownValues values() const { return {.names = text.empty() ? std::vector<std::string>() : names()}; }
};

}  // namespace hone
