#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hone/target/stan/json.hpp"

namespace hone {

// Reads a file of data; nothing if the path is empty. Throws InputError with file, line and key.
std::optional<hone_data::Variables> read_stan_data(const std::filesystem::path& data);
hone_data::Variables stan_data_in(const std::string& text, const std::string& name);  // the same for a file's content

// The part of a translation that the two checks below read.
std::string declarations_in(const std::string& code);

// Compares data with what a program declares, as far as its translation by stanc shows: names, whether numbers are
// whole, the number of dimensions, and those sizes and bounds (lower, upper) that are numbers or single numbers of the
// data. What the translation does not show, the model checks when it is made. Throws InputError that names the file and
// the variable.
void check_stan_data(const std::string& code, const hone_data::Variables& data, const std::filesystem::path& file);
// Throws InputError if a program declares data.
void check_needs_no_data(const std::string& code, const std::filesystem::path& program);

}  // namespace hone
