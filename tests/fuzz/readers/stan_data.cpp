#include "hone/target/stan_data.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::stan_data(std::span<const std::uint8_t> bytes) {
  try {
    stan_data_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "input");
  } catch (const InputError&) {
  }
}
