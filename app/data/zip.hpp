#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hone {

// A file in a zip archive, as its directory describes it.
struct ZipEntry {
  std::string name;
  std::uint32_t method = 0, crc = 0;
  std::uint64_t stored = 0, size = 0, offset = 0;  // bytes in the archive, bytes inflated, the local header
};

// The directory of an archive in memory. Throws InputError that begins with `origin`.
std::vector<ZipEntry> zip_entries(std::span<const std::uint8_t> archive, const std::string& origin);

// The content of an entry, inflated and checked. Memory grows with the bytes that are really there.
std::vector<std::uint8_t> unzipped(std::span<const std::uint8_t> archive, const ZipEntry& entry,
                                   const std::string& origin);

}  // namespace hone
