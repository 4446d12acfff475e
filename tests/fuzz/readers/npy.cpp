#include "app/data/npy.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::npy(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read_npy(source, bytes.size() % 2 ? NpyWanted{Missing::ignored, 1} : NpyWanted{});
  } catch (const InputError&) {
  }
}
