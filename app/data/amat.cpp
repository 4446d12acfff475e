#include "app/data/amat.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "hone/base/error.hpp"

namespace hone {
namespace {

constexpr std::size_t longest_line = 1 << 20;  // numbers

}  // namespace

AmatReader::AmatReader(ByteSource& source, int dimension)
    : source_(source), dimension_(static_cast<std::size_t>(dimension)) {
  if (dimension > 0) rows_ = BitRows(dimension);
  fill(1);
  if (rows_.size() == 0) source_.fail(offset_, "expected lines of zeros and ones, found none");
}

BitRows AmatReader::next(int most) {
  fill(most);
  return std::exchange(rows_, BitRows(dimension()));
}

// Reads on until the buffer has `rows` rows, or to the end.
void AmatReader::fill(int rows) {
  while (rows_.size() < rows) {
    if (at_ == end_) {
      at_ = 0;
      end_ = source_.read({buffer_.get(), size_});
      if (end_ == 0) {
        if (!values_.empty()) end_line();  // the last line may lack its newline
        return;
      }
    }
    while (at_ < end_ && rows_.size() < rows) take(buffer_[at_++]);
  }
}

void AmatReader::take(std::uint8_t character) {
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

void AmatReader::add(std::uint8_t character) {
  if (inside_number_) fail(character);
  if (values_.size() == (dimension_ > 0 ? dimension_ : longest_line))
    throw_at(fmt::format("expected {} numbers per line, found more", values_.size()));
  values_.push_back(character - '0');
  inside_number_ = true;
}

void AmatReader::end_line() {
  if (values_.empty()) throw_at("expected zeros and ones, found an empty line");
  if (dimension_ == 0) {
    dimension_ = values_.size();
    rows_ = BitRows(static_cast<int>(dimension_));
  }
  if (values_.size() != dimension_)
    throw_at(fmt::format("expected {} numbers per line, found {}", dimension_, values_.size()));
  if (total_ == std::numeric_limits<int>::max()) throw_at("too many lines");
  rows_.append(values_);
  ++total_;
  values_.clear();
  inside_number_ = false;
  ++line_;
}

void AmatReader::fail(std::uint8_t character) const {
  const bool printable = character > 0x20 && character < 0x7F;
  throw_at(fmt::format(
      "number {}: expected 0 or 1 and a blank, found {}", values_.size() + (inside_number_ ? 0 : 1),
      printable ? fmt::format("'{}'", static_cast<char>(character)) : fmt::format("byte 0x{:02x}", character)));
}

void AmatReader::throw_at(const std::string& what) const {
  throw InputError(fmt::format("{}: line {} (byte {}): {}", source_.name(), line_, offset_, what));
}

BitRows read_amat(ByteSource& source, int dimension) {
  AmatReader reader(source, dimension);
  BitRows rows = reader.next(std::numeric_limits<int>::max());
  reader.next(1);  // refuses what is too many
  return rows;
}

}  // namespace hone
