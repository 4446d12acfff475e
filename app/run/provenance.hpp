#pragma once

#include <string>

namespace hone {

// The provenance in every summary.json.
std::string hone_version();  // "0.1.0"
std::string host_text();     // processor, threads and system, in words

}  // namespace hone
