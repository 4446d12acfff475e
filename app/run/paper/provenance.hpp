#pragma once

#include <filesystem>
#include <string>

namespace hone {

// "Intel Xeon …, 16 threads; NVIDIA H200": what a figure was computed on.
std::string machine_text();

// provenance.txt of an experiment's folder: a line for every different way that something was computed there, with the
// machine, the version and the command. One that is there already is not repeated.
void note_provenance(const std::filesystem::path& folder, const std::string& version, const std::string& command);
std::string read_provenance(const std::filesystem::path& folder);  // the lines; empty where there are none

}  // namespace hone
