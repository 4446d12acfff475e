#include "app/data/csv.hpp"

#include "tests/fuzz/readers.hpp"

void hone::fuzz::csv(std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    CsvReader reader(source, bytes.size() % 2 ? CsvWanted{Missing::ignored, "b"} : CsvWanted{});
    while (reader.next(piece_of(bytes)).rows > 0) {
    }
  } catch (const InputError&) {
  }
}
