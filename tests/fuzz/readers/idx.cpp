#include "app/data/idx.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::idx(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    IdxReader reader(source);
    while (!reader.next(piece_of(bytes)).empty()) {
    }
  } catch (const InputError&) {
  }
}
