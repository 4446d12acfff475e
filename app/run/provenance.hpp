#pragma once

#include <string>

namespace hone {

// What every summary.json says of where it comes from.
std::string hone_version();  // "0.1.0"
std::string host_text();     // processor, threads and system, in words

}  // namespace hone
