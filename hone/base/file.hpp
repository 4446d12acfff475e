#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hone {

// Puts a finished file where it belongs so that nobody ever sees half of it: syncs it, renames it, syncs the folder.
// Both names must be in one folder. Throws Error.
void place_file(const std::filesystem::path& finished, const std::filesystem::path& destination);

// Sees to it that what was written to a file is on the disk. Throws Error.
void sync_file(const std::filesystem::path& path);

// Writes bytes or a text beside the destination and then places them. Throws Error; the destination is then as it was.
void write_file(const std::filesystem::path& destination, std::span<const std::uint8_t> bytes);
void write_file(const std::filesystem::path& destination, std::string_view text);

// The name beside `destination` under which this process writes what is to come there, and whether a file has such a
// name: then it is one that its process, perhaps killed, had not finished.
std::filesystem::path unfinished_name(const std::filesystem::path& destination);
bool is_unfinished(const std::filesystem::path& path);

// The whole of a file; throws InputError, naming it, where it cannot be read.
std::string read_file(const std::filesystem::path& path);

// The user's cache folder for hone: XDG_CACHE_HOME or ~/.cache, and there hone/. Empty where neither is set.
std::filesystem::path cache_folder();

}  // namespace hone
