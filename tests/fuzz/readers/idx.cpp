#include "app/data/idx.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::idx(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read_idx(source);
  } catch (const InputError&) {
  }
}
