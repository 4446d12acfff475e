#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hone/target/stan.hpp"

namespace hone {

// A checksum of a list of texts; different lists have different checksums.
std::string key_of(const std::vector<std::string>& texts);

// The folder for compiled models and for Stan itself, which is made if it is missing. Throws InputError.
std::filesystem::path cache_of(const StanOptions& options);

// Makes `made`, a file or a folder, unless it exists: make(work folder) returns the finished one inside that folder,
// which lies beside `made` and is removed in any case. If several processes want it, one makes it and the others wait.
// Throws Stopped if options.stop() becomes true while it waits.
void make_once(const std::filesystem::path& made, const StanOptions& options,
               const std::function<std::filesystem::path(const std::filesystem::path&)>& make);

}  // namespace hone
