#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/data/registry.hpp"

namespace hone {

// A folder that may hold one folder per data set.
struct Place {
  std::filesystem::path folder;
  std::string meaning;  // "--data-dir", "HONE_DATA_DIR", "cache", "system"
};

// The places to look for data sets, in this order: `data_dir` (unless empty), HONE_DATA_DIR, the user's cache folder
// (XDG_CACHE_HOME or ~/.cache, and there hone/), system folders.
std::vector<Place> search_places(const std::filesystem::path& data_dir = {});

// The first place that `data get` may write to: the user's places, not the system's.
// Throws InputError if there is none.
std::filesystem::path download_place(const std::filesystem::path& data_dir = {});

struct FoundData {
  std::filesystem::path folder;              // of the data set
  std::vector<std::filesystem::path> files;  // in the order of DataSetInfo::files
};

// The first place that has all files of the set.
std::optional<FoundData> find_data(const DataSetInfo& info, std::span<const Place> places);

// The same, or an InputError that lists every place it looked in and the commands that get the set.
FoundData require_data(const DataSetInfo& info, std::span<const Place> places);

// Commands that get the set, one per line, indented.
std::string how_to_get(const DataSetInfo& info);

}  // namespace hone
