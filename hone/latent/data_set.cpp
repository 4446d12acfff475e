#include "hone/latent/data_set.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

int checked_size(std::size_t values, ImageShape shape) {
  constexpr auto largest = std::size_t{std::numeric_limits<int>::max()};
  if (shape.rows < 1 || shape.cols < 1 || shape.channels < 1 ||
      static_cast<std::size_t>(shape.rows) >
          largest / static_cast<std::size_t>(shape.cols) / static_cast<std::size_t>(shape.channels))
    throw InputError(detail::format("images of {} × {} pixels are impossible", shape.rows, shape.cols));
  const auto pixels = static_cast<std::size_t>(shape.pixels());
  if (values % pixels != 0)
    throw InputError(
        detail::format("{} values are not whole images of {} × {} pixels", values, shape.rows, shape.cols));
  if (values / pixels > largest) throw InputError(detail::format("{} data are more than {}", values / pixels, largest));
  return static_cast<int>(values / pixels);
}

// For each byte, its eight bits as numbers, lowest first.
template <class T>
constexpr auto byte_table() {
  std::array<std::array<T, 8>, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    for (std::size_t i = 0; i < 8; ++i) table[byte][i] = static_cast<T>(byte >> i & 1);
  return table;
}

template <class T>
void expand_bits(std::span<const std::uint64_t> words, std::span<T> out) {
  static constexpr auto table = byte_table<T>();
  std::size_t at = 0;
  for (const std::uint64_t word : words)
    for (int shift = 0; shift < 64 && at < out.size(); shift += 8, at += 8) {
      const std::array<T, 8>& eight = table[word >> shift & 0xFF];
      std::copy_n(eight.begin(), std::min<std::size_t>(8, out.size() - at), out.data() + at);
    }
}

template <class Values>
BitRows pack(const Values& values, int dimension) {
  BitRows bits(dimension);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(dimension));
  for (std::size_t begin = 0; begin < values.size(); begin += row.size()) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = values[begin + i] != 0;
    bits.append(row);
  }
  return bits;
}

BitRows pack(const SparseRows& rows, int dimension) {
  BitRows bits(dimension);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(dimension));
  for (std::size_t n = 0; n + 1 < rows.begin.size(); ++n) {
    std::ranges::fill(row, std::uint8_t{0});
    for (auto i = rows.begin[n]; i < rows.begin[n + 1]; ++i) row[rows.column[i]] = rows.value[i] != 0;
    bits.append(row);
  }
  return bits;
}

// Throws InputError unless rows follow each other and every column is one of the datum's.
int checked_size(const SparseRows& rows, ImageShape shape) {
  checked_size(0, shape);
  if (rows.begin.empty() || rows.begin.front() != 0 || !std::ranges::is_sorted(rows.begin) ||
      static_cast<std::size_t>(rows.begin.back()) != rows.column.size() || rows.column.size() != rows.value.size())
    throw InputError("sparse data: the beginnings of rows do not match the numbers");
  for (const std::int32_t column : rows.column)
    if (column < 0 || column >= shape.pixels())
      throw InputError(detail::format("sparse data: there is no column {} among {}", column, shape.pixels()));
  return static_cast<int>(rows.begin.size()) - 1;
}

template <class T>
void expand_sparse(const SparseRows& rows, int datum, std::span<T> out) {
  std::ranges::fill(out, T(0));
  const auto n = static_cast<std::size_t>(datum);
  for (auto i = rows.begin[n]; i < rows.begin[n + 1]; ++i) out[rows.column[i]] = static_cast<T>(rows.value[i]);
}

template <class Values>
constexpr bool is_view =
    std::is_same_v<Values, std::span<const std::uint8_t>> || std::is_same_v<Values, std::span<const float>> ||
    std::is_same_v<Values, std::span<const double>>;

}  // namespace

DataSet::DataSet(BitRows bits, ImageShape shape) : shape_(shape), size_(bits.size()) {
  checked_size(0, shape);
  if (bits.dimension() != shape.pixels())
    throw InputError(
        detail::format("data of {} values are not images of {} × {} pixels", bits.dimension(), shape.rows, shape.cols));
  values_ = std::move(bits);
}

DataSet::DataSet(std::vector<std::uint8_t> values, ImageShape shape, double scale)
    : shape_(shape), scale_(scale), size_(checked_size(values.size(), shape)) {
  values_ = std::move(values);
}

DataSet::DataSet(std::vector<float> values, ImageShape shape)
    : shape_(shape), size_(checked_size(values.size(), shape)) {
  values_ = std::move(values);
}

DataSet::DataSet(std::vector<double> values, ImageShape shape)
    : shape_(shape), size_(checked_size(values.size(), shape)) {
  values_ = std::move(values);
}

DataSet::DataSet(std::span<const std::uint8_t> values, ImageShape shape)
    : values_(values), shape_(shape), size_(checked_size(values.size(), shape)) {}

DataSet::DataSet(std::span<const float> values, ImageShape shape)
    : values_(values), shape_(shape), size_(checked_size(values.size(), shape)) {}

DataSet::DataSet(std::span<const double> values, ImageShape shape)
    : values_(values), shape_(shape), size_(checked_size(values.size(), shape)) {}

DataSet::DataSet(const SparseRows& rows, ImageShape shape)
    : values_(rows), shape_(shape), size_(checked_size(rows, shape)) {}

std::span<const std::uint8_t> DataSet::bytes() const {
  if (const auto* own = std::get_if<std::vector<std::uint8_t>>(&values_)) return *own;
  if (const auto* view = std::get_if<std::span<const std::uint8_t>>(&values_)) return *view;
  return {};
}

std::size_t DataSet::memory() const {
  return std::visit(
      [](const auto& values) -> std::size_t {
        using Values = std::decay_t<decltype(values)>;
        if constexpr (std::is_same_v<Values, BitRows>)
          return values.memory();
        else if constexpr (is_view<Values> || std::is_same_v<Values, SparseRows>)
          return 0;
        else
          return values.size() * sizeof(values.front());
      },
      values_);
}

template <class T>
void DataSet::expand(std::span<const int> indices, MatrixView<T> out) const {
  if (out.rows() != dimension() || static_cast<std::size_t>(out.cols()) != indices.size())
    throw InputError(detail::format("{} data of {} values do not fit into {} × {} numbers", indices.size(), dimension(),
                                    out.rows(), out.cols()));
  for (int col = 0; col < out.cols(); ++col) {
    const int datum = indices[static_cast<std::size_t>(col)];
    if (datum < 0 || datum >= size_) throw InputError(detail::format("there is no datum {} among {}", datum, size_));
    const std::span<T> column = out.column(col);
    if (bits()) {
      expand_bits(bits()->row(datum), column);
      continue;
    }
    const auto begin = static_cast<std::size_t>(datum) * column.size();
    std::visit(
        [&](const auto& values) {
          using Values = std::decay_t<decltype(values)>;
          if constexpr (std::is_same_v<Values, SparseRows>) {
            expand_sparse(values, datum, column);
          } else if constexpr (!std::is_same_v<Values, BitRows>) {
            const auto scale = static_cast<T>(scale_);
            for (std::size_t i = 0; i < column.size(); ++i) column[i] = static_cast<T>(values[begin + i]) * scale;
          }
        },
        values_);
  }
}

template void DataSet::expand<float>(std::span<const int>, MatrixView<float>) const;
template void DataSet::expand<double>(std::span<const int>, MatrixView<double>) const;

DataSet DataSet::slice(int begin, int end) const {
  if (begin < 0 || end < begin || end > size_)
    throw InputError(detail::format("there are no data [{}, {}) among {}", begin, end, size_));
  DataSet part;
  part.shape_ = shape_;
  part.scale_ = scale_;
  part.size_ = end - begin;
  std::visit(
      [&](const auto& values) {
        using Values = std::decay_t<decltype(values)>;
        if constexpr (std::is_same_v<Values, BitRows>) {
          BitRows rows(values.dimension());
          rows.append(values, begin, end);
          part.values_ = std::move(rows);
        } else if constexpr (std::is_same_v<Values, SparseRows>) {
          if (begin != 0) throw InputError("sparse data can be cut at the end only");
          const auto numbers = static_cast<std::size_t>(values.begin[static_cast<std::size_t>(end)]);
          part.values_ = SparseRows{values.begin.first(static_cast<std::size_t>(end) + 1), values.column.first(numbers),
                                    values.value.first(numbers)};
        } else {
          const std::ptrdiff_t pixels = shape_.pixels();
          part.values_ = Values(values.begin() + begin * pixels, values.begin() + end * pixels);
        }
      },
      values_);
  return part;
}

DataSet packed_if_binary(DataSet data) {
  return std::visit(
      [&](const auto& values) {
        using Values = std::decay_t<decltype(values)>;
        if constexpr (!std::is_same_v<Values, BitRows>) {
          const double one = 1 / data.scale_;
          const auto all = [&](const auto& numbers) {
            return std::all_of(numbers.begin(), numbers.end(), [&](auto x) { return x == 0 || x == one; });
          };
          bool binary;
          if constexpr (std::is_same_v<Values, SparseRows>)
            binary = all(values.value);
          else
            binary = all(values);
          if (binary) return DataSet(pack(values, data.shape_.pixels()), data.shape_);
        }
        return std::move(data);
      },
      data.values_);
}

}  // namespace hone
