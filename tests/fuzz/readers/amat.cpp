#include "app/data/amat.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::amat(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read_amat(source);
  } catch (const InputError&) {
  }
}
