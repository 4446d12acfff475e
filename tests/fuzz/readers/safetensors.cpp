#include "app/run/safetensors.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::safetensors(std::span<const std::uint8_t> bytes) {
  try {
    from_safetensors(bytes, "input");
  } catch (const InputError&) {
  }
}
