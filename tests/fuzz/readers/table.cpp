#include "app/report/csv_table.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::table(std::span<const std::uint8_t> bytes) {
  try {
    csv_table_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "input");
  } catch (const InputError&) {
  }
}
