#pragma once

#include <CLI/CLI.hpp>

namespace hone {

// Each adds one subcommand to the program, whose callback does the work. Bad input is an InputError.
void add_toy_command(CLI::App& program);
void add_reproduce_command(CLI::App& program);
void add_data_command(CLI::App& program);  // list, get, verify, show

}  // namespace hone
