#pragma once

#include <filesystem>

#include "hone/target/stan.hpp"

namespace hone {

// The first part of install_stan: unpacks the wheel into a folder httpstan-VERSION of the cache, and returns that
// folder.
std::filesystem::path install_httpstan(const std::filesystem::path& wheel, const StanOptions& options);

}  // namespace hone
