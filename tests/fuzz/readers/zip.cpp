#include "app/data/zip.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::zip(std::span<const std::uint8_t> bytes) {
  try {
    for (const ZipEntry& entry : zip_entries(bytes, "input")) unzipped(bytes, entry, "input");
  } catch (const InputError&) {
  }
}
