#include "app/data/picture.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::image(std::span<const std::uint8_t> bytes) {
  try {
    read_image(bytes, "input");
  } catch (const InputError&) {
  }
}
