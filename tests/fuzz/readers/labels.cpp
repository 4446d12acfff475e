#include "app/data/labels.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::labels(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read_labels(source, 3);
  } catch (const InputError&) {
  }
}
