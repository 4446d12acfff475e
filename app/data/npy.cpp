#include "app/data/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte for byte");

constexpr std::uint32_t longest_header = 1 << 16;

struct Header {
  std::optional<NpyType> type;
  std::optional<bool> fortran_order;
  std::optional<std::array<int, 2>> shape;
};

// The header is the text of a Python dictionary with three known keys.
class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, std::string_view text, std::uint64_t offset)
      : source_(source), text_(text), offset_(offset) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      parse_entry(header);
      if (!accept(',') && peek() != '}') fail("',' or '}'");
    }
    skip_blanks();
    if (at_ != text_.size()) fail("the end of the header");
    if (!header.type) fail("the key 'descr' in the header");
    if (!header.fortran_order) fail("the key 'fortran_order' in the header");
    if (!header.shape) fail("the key 'shape' in the header");
    return header;
  }

 private:
  void parse_entry(Header& header) {
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view key = quoted();
    expect(':');
    if (key == "descr" && !header.type) {
      header.type = type();
    } else if (key == "fortran_order" && !header.fortran_order) {
      header.fortran_order = boolean();
    } else if (key == "shape" && !header.shape) {
      header.shape = shape();
    } else {
      at_ = start;
      fail("the keys 'descr', 'fortran_order' and 'shape', each once");
    }
  }

  NpyType type() {
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view name = peek() == '\'' || peek() == '"' ? quoted() : "";
    if (name == "|b1" || name == "?") return NpyType::boolean;
    if (name == "|u1" || name == "u1") return NpyType::uint8;
    if (name == "<f4") return NpyType::float32;
    if (name == "<f8") return NpyType::float64;
    at_ = start;
    fail("a type among '|b1', '|u1', '<f4' and '<f8'");
  }

  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    fail("True or False");
  }

  std::array<int, 2> shape() {
    expect('(');
    std::array<int, 2> sizes;
    sizes[0] = size();
    if (!accept(',') || peek() == ')') fail("a shape of two sizes, (data, dimension)");
    sizes[1] = size();
    if (accept(',') && peek() != ')') fail("a shape of two sizes, (data, dimension)");
    expect(')');
    return sizes;
  }

  int size() {
    skip_blanks();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ < start + 10)
      value = 10 * value + static_cast<std::uint64_t>(text_[at_++] - '0');
    if (value == 0 || value > std::uint64_t{std::numeric_limits<int>::max()}) {
      at_ = start;
      fail(fmt::format("a size from 1 to {}", std::numeric_limits<int>::max()));
    }
    return static_cast<int>(value);
  }

  std::string_view quoted() {
    skip_blanks();
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted word");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quoted word with its closing quote");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char character) {
    if (peek() != character || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char character) {
    if (!accept(character)) fail(fmt::format("'{}'", character));
  }
  [[noreturn]] void fail(std::string_view expected) const {
    source_.fail(offset_ + at_, fmt::format("expected {} in the .npy header", expected));
  }

  const ByteSource& source_;
  std::string_view text_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

Header read_header(ByteSource& source) {
  constexpr std::array<std::uint8_t, 6> magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  std::array<std::uint8_t, 8> start;
  source.read_exactly(start, "the magic number and version of a .npy file");
  if (!std::equal(magic.begin(), magic.end(), start.begin())) source.fail(0, "expected a .npy file (93 'NUMPY')");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    source.fail(6, fmt::format("expected .npy version 1.0, 2.0 or 3.0, found {}.{}", start[6], start[7]));
  std::array<std::uint8_t, 4> length{};
  source.read_exactly(std::span(length).first(start[6] == 1 ? 2 : 4), "the length of the .npy header");
  const auto bytes = std::bit_cast<std::uint32_t>(length);
  if (bytes > longest_header)
    source.fail(8, fmt::format("expected a header of at most {} bytes, found {}", longest_header, bytes));
  const std::uint64_t offset = source.offset();
  std::string text(bytes, ' ');
  source.read_exactly({reinterpret_cast<std::uint8_t*>(text.data()), text.size()}, "the .npy header");
  return HeaderParser(source, text, offset).parse();
}

// (cols, rows), the order of a Fortran file, becomes (rows, cols).
template <class T>
std::vector<T> transposed(const std::vector<T>& values, std::size_t rows, std::size_t cols) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) result[i * cols + j] = values[j * rows + i];
  return result;
}

template <class T>
std::vector<T> numbers(const ByteSource& source, const std::vector<std::uint8_t>& bytes, std::uint64_t offset) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) source.fail(offset + i * sizeof(T), "expected a finite number");
  return values;
}

std::size_t width(NpyType type) { return type == NpyType::float64 ? 8 : type == NpyType::float32 ? 4 : 1; }

}  // namespace

NpyMatrix read_npy(ByteSource& source) {
  const Header header = read_header(source);
  NpyMatrix matrix{*header.type, (*header.shape)[0], (*header.shape)[1], {}};
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto cols = static_cast<std::size_t>(matrix.cols);
  const std::uint64_t offset = source.offset();
  if (rows > std::numeric_limits<std::uint64_t>::max() / cols / width(matrix.type))
    source.fail(offset, "the header announces an impossible number of bytes");
  std::vector<std::uint8_t> bytes = source.read_announced(rows * cols * width(matrix.type), "values");
  source.expect_end();
  if (matrix.type == NpyType::boolean)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] > 1) source.fail(offset + i, fmt::format("expected a boolean, 0 or 1, found {}", bytes[i]));

  switch (matrix.type) {
    case NpyType::float32:
      matrix.values = numbers<float>(source, bytes, offset);
      break;
    case NpyType::float64:
      matrix.values = numbers<double>(source, bytes, offset);
      break;
    case NpyType::boolean:
    case NpyType::uint8:
      matrix.values = std::move(bytes);
      break;
  }
  if (*header.fortran_order) std::visit([&](auto& values) { values = transposed(values, rows, cols); }, matrix.values);
  return matrix;
}

}  // namespace hone
