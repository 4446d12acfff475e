#include "app/data/npy.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::npy(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    NpyReader reader(source, bytes.size() % 2 ? NpyWanted{Missing::ignored, 1} : NpyWanted{});
    const auto size = [](const auto& values) { return values.size(); };
    while (std::visit(size, reader.next(piece_of(bytes))) > 0) {
    }
  } catch (const InputError&) {
  }
}
