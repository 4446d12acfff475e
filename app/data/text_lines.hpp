#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/data/byte_source.hpp"

namespace hone {

// The lines of a text file, without their ends. Errors name the file and the line.
class TextLines {
 public:
  explicit TextLines(ByteSource& source) : source_(source) {}

  bool next(std::string& line);  // false at the end of the file
  std::uint64_t number() const { return number_; }
  const std::string& name() const { return source_.name(); }
  [[noreturn]] void fail(std::string_view what) const;  // about the line that was read last

 private:
  ByteSource& source_;
  static constexpr std::size_t size_ = 1 << 16;
  std::unique_ptr<std::uint8_t[]> buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(size_);
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t number_ = 0;
};

// The whole text as a number, with a sign or without; false if it is none.
bool parse_number(std::string_view text, double& value);

// Text from a file for a message: cut to a number of characters, without control characters and bytes that are not
// UTF-8.
std::string shown(std::string_view text, std::size_t longest = 40);

}  // namespace hone
