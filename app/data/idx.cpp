#include "app/data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace hone {

IdxReader::IdxReader(ByteSource& source) : source_(source) {
  std::array<std::uint8_t, 4> magic;
  source.read_exactly(magic, "the magic number of an IDX file");
  if (magic[0] != 0 || magic[1] != 0)
    source.fail(0, fmt::format("expected an IDX file (00 00 08 and the number of dimensions), found "
                               "{:02x} {:02x} {:02x} {:02x}",
                               magic[0], magic[1], magic[2], magic[3]));
  if (magic[2] != 0x08) source.fail(2, fmt::format("expected type 0x08 (unsigned bytes), found 0x{:02x}", magic[2]));
  if (magic[3] < 1 || magic[3] > 3) source.fail(3, fmt::format("expected 1 to 3 dimensions, found {}", magic[3]));

  std::uint64_t count = 1;
  for (int i = 0; i < magic[3]; ++i) {
    const std::uint64_t at = source.offset();
    std::array<std::uint8_t, 4> word;
    source.read_exactly(word, "a dimension");
    const std::uint32_t size = std::uint32_t{word[0]} << 24 | std::uint32_t{word[1]} << 16 |
                               std::uint32_t{word[2]} << 8 | std::uint32_t{word[3]};
    constexpr auto largest = std::uint64_t{std::numeric_limits<int>::max()};
    if (size == 0 || size > largest)
      source.fail(at, fmt::format("expected a dimension from 1 to {}, found {}", largest, size));
    if (count > std::numeric_limits<std::uint64_t>::max() / size)
      source.fail(at, "the header announces an impossible number of bytes");
    count *= size;
    dimensions_.push_back(static_cast<int>(size));
  }
  item_ = count / static_cast<std::uint64_t>(dimensions_[0]);
  source.check_announced(count, "values");
}

std::vector<std::uint8_t> IdxReader::next(int most) {
  const int items = std::min(most, dimensions_[0] - done_);
  std::vector<std::uint8_t> values = source_.read_announced(static_cast<std::uint64_t>(items) * item_, "values");
  done_ += items;
  if (done_ == dimensions_[0]) source_.expect_end();
  return values;
}

IdxArray read_idx(ByteSource& source) {
  IdxReader reader(source);
  return {reader.dimensions(), reader.next(reader.dimensions()[0])};
}

}  // namespace hone
