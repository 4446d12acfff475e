#include "app/data/amat.hpp"

#include <fmt/format.h>

#include <limits>

#include "hone/base/error.hpp"

namespace hone {
namespace {

constexpr std::size_t longest_line = 1 << 20;  // numbers

class Lines {
 public:
  Lines(ByteSource& source, int dimension) : source_(source), dimension_(static_cast<std::size_t>(dimension)) {
    if (dimension > 0) rows_ = BitRows(dimension);
  }

  void take(std::uint8_t character) {
    switch (character) {
      case '0':
      case '1':
        add(character);
        break;
      case ' ':
      case '\t':
      case '\r':
        inside_number_ = false;
        break;
      case '\n':
        end_line();
        break;
      default:
        fail(character);
    }
    ++offset_;
  }

  BitRows finish() {
    if (!values_.empty()) end_line();  // the last line may lack its newline
    if (rows_.size() == 0) source_.fail(offset_, "expected lines of zeros and ones, found none");
    return std::move(rows_);
  }

 private:
  void add(std::uint8_t character) {
    if (inside_number_) fail(character);
    if (values_.size() == (dimension_ > 0 ? dimension_ : longest_line))
      throw_at(fmt::format("expected {} numbers per line, found more", values_.size()));
    values_.push_back(character - '0');
    inside_number_ = true;
  }

  void end_line() {
    if (values_.empty()) throw_at("expected zeros and ones, found an empty line");
    if (dimension_ == 0) {
      dimension_ = values_.size();
      rows_ = BitRows(static_cast<int>(dimension_));
    }
    if (values_.size() != dimension_)
      throw_at(fmt::format("expected {} numbers per line, found {}", dimension_, values_.size()));
    if (rows_.size() == std::numeric_limits<int>::max()) throw_at("too many lines");
    rows_.append(values_);
    values_.clear();
    inside_number_ = false;
    ++line_;
  }

  [[noreturn]] void fail(std::uint8_t character) const {
    const bool printable = character > 0x20 && character < 0x7F;
    throw_at(fmt::format(
        "number {}: expected 0 or 1 and a blank, found {}", values_.size() + (inside_number_ ? 0 : 1),
        printable ? fmt::format("'{}'", static_cast<char>(character)) : fmt::format("byte 0x{:02x}", character)));
  }

  [[noreturn]] void throw_at(const std::string& what) const {
    throw InputError(fmt::format("{}: line {} (byte {}): {}", source_.name(), line_, offset_, what));
  }

  const ByteSource& source_;
  std::size_t dimension_;
  BitRows rows_;
  std::vector<std::uint8_t> values_;  // of the line so far
  bool inside_number_ = false;
  std::uint64_t line_ = 1;
  std::uint64_t offset_ = 0;
};

}  // namespace

BitRows read_amat(ByteSource& source, int dimension) {
  Lines lines(source, dimension);
  std::vector<std::uint8_t> buffer(1 << 16);
  while (const std::size_t got = source.read(buffer))
    for (std::size_t i = 0; i < got; ++i) lines.take(buffer[i]);
  return lines.finish();
}

}  // namespace hone
