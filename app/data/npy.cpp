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
#include <utility>

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte for byte");

constexpr std::uint32_t longest_header = 1 << 16;

constexpr std::size_t most_sizes = 8;

struct Type {
  NpyType type;
  std::string_view name;
  std::size_t width;
};
constexpr std::array<Type, 11> types = {{{NpyType::boolean, "|b1", 1},
                                         {NpyType::uint8, "|u1", 1},
                                         {NpyType::int8, "|i1", 1},
                                         {NpyType::uint16, "<u2", 2},
                                         {NpyType::int16, "<i2", 2},
                                         {NpyType::uint32, "<u4", 4},
                                         {NpyType::int32, "<i4", 4},
                                         {NpyType::uint64, "<u8", 8},
                                         {NpyType::int64, "<i8", 8},
                                         {NpyType::float32, "<f4", 4},
                                         {NpyType::float64, "<f8", 8}}};

struct Header {
  std::optional<NpyType> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int>> shape;
};

// What to do in NumPy about an array whose type hone does not read.
std::string astype(std::string_view name) {
  const bool whole = name.size() > 2 && (name[1] == 'i' || name[1] == 'u');
  const bool real = name.size() > 2 && name[1] == 'f';
  if (whole || real)
    return fmt::format("save x.astype(\"{}\")", whole ? "int64" : name.substr(1) == "f2" ? "float32" : "float64");
  return name.find('O') != name.npos ? "an array of Python objects; save x.astype(\"float64\")"
                                     : "these are no numbers";
}

// The header is the text of a Python dictionary with three known keys.
class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, std::string_view text, std::uint64_t offset, std::size_t least_sizes)
      : source_(source), text_(text), offset_(offset), least_sizes_(least_sizes) {}

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
    for (const Type& known : types)
      if (name == known.name || (known.name[0] == '|' && name == known.name.substr(1))) return known.type;
    if (name == "?") return NpyType::boolean;
    at_ = start;
    fail("a type among bool, integers, '<f4' and '<f8' (little endian)",
         name.empty() ? "" : fmt::format("'{}'; {}", name, astype(name)));
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

  std::vector<int> shape() {
    expect('(');
    std::vector<int> sizes = {size()};
    while (accept(',') && peek() != ')') sizes.push_back(size());
    expect(')');
    if (sizes.size() < least_sizes_)
      fail("a shape of at least two sizes, (data, values)", "one; x.reshape(-1, 1) has one value per datum");
    if (sizes.size() > most_sizes) fail(fmt::format("a shape of at most {} sizes", most_sizes));
    return sizes;
  }

  int size() {
    skip_blanks();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ < start + 10)
      value = 10 * value + static_cast<std::uint64_t>(text_[at_++] - '0');
    const std::size_t digits = at_ - start;
    if (value == 0 || value > std::uint64_t{std::numeric_limits<int>::max()}) {
      at_ = start;
      fail(fmt::format("a size from 1 to {}", std::numeric_limits<int>::max()), value == 0 && digits > 0 ? "0" : "");
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
  [[noreturn]] void fail(std::string_view expected, const std::string& found = "") const {
    source_.fail(offset_ + at_,
                 fmt::format("expected {} in the .npy header{}", expected, found.empty() ? "" : ", found " + found));
  }

  const ByteSource& source_;
  std::string_view text_;
  std::uint64_t offset_;
  std::size_t least_sizes_;
  std::size_t at_ = 0;
};

Header read_header(ByteSource& source, std::size_t least_sizes) {
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
  return HeaderParser(source, text, offset, least_sizes).parse();
}

// The order of a Fortran file, first index fastest, becomes ours.
template <class T>
std::vector<T> reordered(const std::vector<T>& values, std::span<const int> shape) {
  std::vector<T> result(values.size());
  std::vector<std::size_t> stride(shape.size()), index(shape.size());
  for (std::size_t d = 0, step = 1; d < shape.size(); step *= static_cast<std::size_t>(shape[d++])) stride[d] = step;
  for (T& out : result) {
    std::size_t from = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) from += index[d] * stride[d];
    out = values[from];
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < static_cast<std::size_t>(shape[d])) break;
      index[d] = 0;
    }
  }
  return result;
}

// The numbers of a piece of a file, with where a message should point.
struct Numbers {
  const ByteSource& source;
  const std::vector<std::uint8_t>& bytes;
  std::uint64_t offset;
  std::size_t first;  // the place of the first number in the array
  int cols;           // values per datum; 0: they do not follow each other

  template <class T>
  std::vector<T> reals(Missing missing) const {
    std::vector<T> values = copied<T>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]) && !(missing == Missing::ignored && std::isnan(values[i])))
        fail<T>(i, fmt::format("expected a finite number, found {} ({}){}", values[i], place(i),
                               std::isnan(values[i]) ? missing_hint : ""));
    return values;
  }

  template <class T>
  NpyValues integers() const {
    const std::vector<T> values = copied<T>();
    constexpr double largest = 9007199254740992;  // 2^53
    const auto small = [](T value) { return std::in_range<std::uint8_t>(value); };
    if (std::ranges::all_of(values, small)) return std::vector<std::uint8_t>(values.begin(), values.end());
    std::vector<double> wide(values.begin(), values.end());
    for (std::size_t i = 0; i < wide.size(); ++i)
      if (std::abs(wide[i]) > largest)
        fail<T>(i,
                fmt::format("expected an integer up to 2^53, found {} (number {} of the array)", values[i], first + i));
    return wide;
  }

 private:
  std::string place(std::size_t i) const {
    const std::size_t number = first + i, width = static_cast<std::size_t>(cols);
    return cols > 0 ? fmt::format("datum {}, position {}", number / width, number % width)
                    : fmt::format("number {} of the array", number);
  }
  template <class T>
  std::vector<T> copied() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <class T>
  [[noreturn]] void fail(std::size_t i, const std::string& what) const {
    source.fail(offset + i * sizeof(T), what);
  }
};

std::size_t width(NpyType type) { return std::ranges::find(types, type, &Type::type)->width; }

NpyValues values_of(NpyType type, std::vector<std::uint8_t>& bytes, const Numbers& numbers, Missing missing) {
  switch (type) {
    case NpyType::float32:
      return numbers.reals<float>(missing);
    case NpyType::float64:
      return numbers.reals<double>(missing);
    case NpyType::boolean:
    case NpyType::uint8:
      return std::move(bytes);
    case NpyType::int8:
      return numbers.integers<std::int8_t>();
    case NpyType::uint16:
      return numbers.integers<std::uint16_t>();
    case NpyType::int16:
      return numbers.integers<std::int16_t>();
    case NpyType::uint32:
      return numbers.integers<std::uint32_t>();
    case NpyType::int32:
      return numbers.integers<std::int32_t>();
    case NpyType::uint64:
      return numbers.integers<std::uint64_t>();
    case NpyType::int64:
      return numbers.integers<std::int64_t>();
  }
  return {};
}

}  // namespace

NpyReader::NpyReader(ByteSource& source, const NpyWanted& wanted) : source_(source), missing_(wanted.missing) {
  const Header header = read_header(source, wanted.least_sizes);
  header_ = {.type = *header.type,
             .fortran_order = *header.fortran_order,
             .rows = header.shape->front(),
             .shape = std::vector<int>(header.shape->begin() + 1, header.shape->end()),
             .cols = 1};
  for (const int size : header_.shape) {
    if (size > std::numeric_limits<int>::max() / header_.cols)
      source.fail(source.offset(), "the header announces an impossible number of values");
    header_.cols *= size;
  }
  const auto rows = static_cast<std::size_t>(header_.rows), cols = static_cast<std::size_t>(header_.cols);
  if (rows > std::numeric_limits<std::uint64_t>::max() / cols / width(header_.type))
    source.fail(source.offset(), "the header announces an impossible number of bytes");
  source.check_announced(rows * cols * width(header_.type), "values");
}

NpyValues NpyReader::next(int most) {
  if (done_ == header_.rows) return {};
  const int rows = header_.fortran_order ? header_.rows - done_ : std::min(most, header_.rows - done_);
  const std::uint64_t offset = source_.offset();
  const auto cols = static_cast<std::size_t>(header_.cols);
  std::vector<std::uint8_t> bytes =
      source_.read_announced(static_cast<std::size_t>(rows) * cols * width(header_.type), "values");
  const std::size_t first = static_cast<std::size_t>(done_) * cols;
  done_ += rows;
  if (done_ == header_.rows) source_.expect_end();
  if (header_.type == NpyType::boolean)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] > 1) source_.fail(offset + i, fmt::format("expected a boolean, 0 or 1, found {}", bytes[i]));
  const Numbers numbers{.source = source_,
                        .bytes = bytes,
                        .offset = offset,
                        .first = first,
                        .cols = header_.fortran_order ? 0 : header_.cols};
  NpyValues result = values_of(header_.type, bytes, numbers, missing_);
  if (header_.fortran_order) {
    std::vector<int> sizes = {rows};
    sizes.insert(sizes.end(), header_.shape.begin(), header_.shape.end());
    std::visit([&](auto& values) { values = reordered(values, sizes); }, result);
  }
  return result;
}

NpyMatrix read_npy(ByteSource& source, const NpyWanted& wanted) {
  NpyReader reader(source, wanted);
  return {reader.header(), reader.next(reader.header().rows)};
}

}  // namespace hone
