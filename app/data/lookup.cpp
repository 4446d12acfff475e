#include "app/data/lookup.hpp"

#include <fmt/format.h>

#include <system_error>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The published name comes first: an older file must not shadow a download.
std::optional<fs::path> file_in(const fs::path& folder, const DataFile& file) {
  for (const std::string& name : {file.published, file.name, file.name + ".gz"})
    if (is_file(folder / name)) return folder / name;
  return std::nullopt;
}

// In words, what is wrong with a place that does not have the set.
std::string lack(const DataSetInfo& info, const Place& place) {
  std::error_code error;
  if (!fs::is_directory(place.folder, error)) return "no such folder";
  const fs::path folder = place.folder / info.name;
  if (!fs::is_directory(folder, error)) return fmt::format("has no folder {}", info.name);
  std::string missing;
  for (const DataFile& file : info.files)
    if (!file_in(folder, file)) missing += (missing.empty() ? "" : ", ") + file.name;
  return fmt::format("{} lacks {}", folder.string(), missing);
}

}  // namespace

std::vector<Place> search_places(const fs::path& data_dir) {
  std::vector<Place> places;
  if (!data_dir.empty()) places.push_back({data_dir, "--data-dir"});
  if (const fs::path folder = environment("HONE_DATA_DIR"); !folder.empty())
    places.push_back({folder, "HONE_DATA_DIR"});
  if (const fs::path cache = cache_folder(); !cache.empty()) places.push_back({cache, "cache"});
  places.push_back({"/usr/local/share/datasets", "system"});
  places.push_back({"/usr/share/datasets", "system"});
  return places;
}

fs::path download_place(const fs::path& data_dir) {
  const std::vector<Place> places = search_places(data_dir);
  if (places.front().meaning == "system")
    throw InputError("no folder for data: give --data-dir, or set HONE_DATA_DIR or HOME");
  return places.front().folder;
}

std::optional<FoundData> find_data(const DataSetInfo& info, std::span<const Place> places) {
  for (const Place& place : places) {
    FoundData found{place.folder / info.name, {}};
    for (const DataFile& file : info.files)
      if (const auto path = file_in(found.folder, file)) found.files.push_back(*path);
    if (found.files.size() == info.files.size()) return found;
  }
  return std::nullopt;
}

FoundData require_data(const DataSetInfo& info, std::span<const Place> places) {
  if (auto found = find_data(info, places)) return *found;
  std::string message = fmt::format("data set '{}' was not found; looked in\n", info.name);
  for (const Place& place : places)
    message += fmt::format("  {} ({}): {}\n", place.folder.string(), place.meaning, lack(info, place));
  throw InputError(message + "to get it:\n" + how_to_get(info));
}

std::string how_to_get(const DataSetInfo& info) {
  std::string commands = fmt::format("  hone data get {}", info.name);
  if (!info.package.empty()) commands += fmt::format("\n  apt-get install {}", info.package);
  return commands;
}

}  // namespace hone
