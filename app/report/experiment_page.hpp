#pragma once

#include <filesystem>

#include "app/report/page.hpp"

namespace hone {

// What `hone reproduce` found, from the texts and pictures in its folder: Table 1 first, then the figures and the
// claims. Returns whether there was anything.
bool write_experiments(const std::filesystem::path& folder, Page& page);
bool has_experiments(const std::filesystem::path& folder);  // whether it would find any

}  // namespace hone
