#include "app/data/matrix_market.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::mtx(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read_matrix_market(source);
  } catch (const InputError&) {
  }
}
