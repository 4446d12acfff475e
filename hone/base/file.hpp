#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

// An environment variable; `otherwise` if it is not set or empty.
std::string environment(const char* name, const char* otherwise = "");

// Moves a finished file to its destination in the same folder, so that nobody sees half of it: syncs it, renames
// it, syncs the folder. Throws Error, which names the destination.
void place_file(const std::filesystem::path& finished, const std::filesystem::path& destination);

// Makes sure that what was written to a file is on the disk. Throws Error.
void sync_file(const std::filesystem::path& path);

// Writes bytes or text to a temporary file and then moves it to the destination. Throws Error, which names the
// destination, and leaves that as it was. `before_placing`: called when the temporary file is complete and on the disk.
void write_file(const std::filesystem::path& destination, std::span<const std::uint8_t> bytes,
                const std::function<void()>& before_placing = {});
void write_file(const std::filesystem::path& destination, std::string_view text);

// The temporary name, in the folder of `destination`, that this process writes to before the file is moved there; and
// whether a file has such a name, because its process is still writing it or was killed.
std::filesystem::path unfinished_name(const std::filesystem::path& destination);
bool is_unfinished(const std::filesystem::path& path);

// Reads a whole file. Throws InputError with its name if it cannot be read.
std::string read_file(const std::filesystem::path& path);

// The user's cache folder for hone: hone/ in XDG_CACHE_HOME, or else in ~/.cache. Empty if neither variable is set.
std::filesystem::path cache_folder();

}  // namespace hone
