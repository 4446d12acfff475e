// One program per reader: HONE_FUZZ_READER names it.
#include <cstddef>

#include "tests/fuzz/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hone::fuzz::HONE_FUZZ_READER({data, size});
  return 0;
}
