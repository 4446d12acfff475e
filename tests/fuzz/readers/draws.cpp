#include "app/run/draws_file.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::draws(std::span<const std::uint8_t> bytes) {
  try {
    csv_draws_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "input");
  } catch (const InputError&) {
  }
}
