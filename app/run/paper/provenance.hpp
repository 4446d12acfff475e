#pragma once

#include <filesystem>
#include <string>

namespace hone {

// The machine that computes: "Intel Xeon …, 16 threads; NVIDIA H200".
std::string machine_text();

// provenance.txt of an experiment's folder: one line for each combination of version, machine and command that computed
// something there. A line that exists already is not repeated.
void note_provenance(const std::filesystem::path& folder, const std::string& version, const std::string& command);
std::string read_provenance(const std::filesystem::path& folder);  // the lines; empty if there are none

}  // namespace hone
