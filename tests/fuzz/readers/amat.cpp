#include "app/data/amat.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::amat(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    AmatReader reader(source);
    while (reader.next(piece_of(bytes)).size() > 0) {
    }
  } catch (const InputError&) {
  }
}
