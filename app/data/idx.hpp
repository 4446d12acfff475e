#pragma once

#include <cstdint>
#include <vector>

#include "app/data/byte_source.hpp"

namespace hone {

// An array of unsigned bytes, last index fastest: images are (items, rows, cols), labels (items).
struct IdxArray {
  std::vector<int> dimensions;  // one to three, none of them 0
  std::vector<std::uint8_t> values;
};

// Reads an IDX file (the format of MNIST). Throws InputError if anything is wrong.
class IdxReader {
 public:
  explicit IdxReader(ByteSource& source);
  const std::vector<int>& dimensions() const { return dimensions_; }
  std::vector<std::uint8_t> next(int most);  // the values of the next items, at most `most`; none at the end

 private:
  ByteSource& source_;
  std::vector<int> dimensions_;
  std::uint64_t item_ = 1;  // its bytes
  int done_ = 0;
};

IdxArray read_idx(ByteSource& source);  // the whole array

}  // namespace hone
