#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace hone {

// Puts a finished file where it belongs so that nobody ever sees half of it: syncs it, renames it, syncs the folder.
// Both names must be in one folder. Throws Error.
void place_file(const std::filesystem::path& finished, const std::filesystem::path& destination);

// Writes bytes beside the destination and then places them. Throws Error; the destination is then as it was.
void write_file(const std::filesystem::path& destination, std::span<const std::uint8_t> bytes);

}  // namespace hone
