#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/data/byte_source.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// Reads a text of zeros and ones: one datum per line, blanks between the numbers. With `dimension` 0 the first line
// sets how many numbers each line has. Throws InputError with the line number if it finds anything else.
class AmatReader {
 public:
  explicit AmatReader(ByteSource& source, int dimension = 0);  // reads the first line
  int dimension() const { return rows_.dimension(); }
  BitRows next(int most);  // the next data, at most `most`; none at the end

 private:
  void fill(int rows);
  void take(std::uint8_t character);
  void add(std::uint8_t character);
  void end_line();
  [[noreturn]] void fail(std::uint8_t character) const;
  [[noreturn]] void throw_at(const std::string& what) const;

  ByteSource& source_;
  static constexpr std::size_t size_ = 1 << 16;
  std::unique_ptr<std::uint8_t[]> buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(size_);
  std::size_t at_ = 0, end_ = 0;  // of the buffer
  std::size_t dimension_;
  BitRows rows_;
  int total_ = 0;                     // rows so far
  std::vector<std::uint8_t> values_;  // of the line so far
  bool inside_number_ = false;
  std::uint64_t line_ = 1;
  std::uint64_t offset_ = 0;
};

BitRows read_amat(ByteSource& source, int dimension = 0);  // the whole text

}  // namespace hone
