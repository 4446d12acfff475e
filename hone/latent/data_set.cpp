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
  if (shape.rows < 1 || shape.cols < 1 ||
      static_cast<std::size_t>(shape.rows) > largest / static_cast<std::size_t>(shape.cols))
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

template <class T>
BitRows pack(const std::vector<T>& values, int dimension) {
  BitRows bits(dimension);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(dimension));
  for (std::size_t begin = 0; begin < values.size(); begin += row.size()) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = values[begin + i] != 0;
    bits.append(row);
  }
  return bits;
}

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

std::size_t DataSet::memory() const {
  if (bits()) return bits()->memory();
  const auto values = static_cast<std::size_t>(size_) * static_cast<std::size_t>(shape_.pixels());
  if (bytes()) return values;
  return values * (std::holds_alternative<std::vector<float>>(values_) ? sizeof(float) : sizeof(double));
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
          if constexpr (!std::is_same_v<std::decay_t<decltype(values)>, BitRows>) {
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
        if constexpr (!std::is_same_v<std::decay_t<decltype(values)>, BitRows>) {
          const double one = 1 / data.scale_;
          const bool binary = std::all_of(values.begin(), values.end(), [&](auto x) { return x == 0 || x == one; });
          if (binary) return DataSet(pack(values, data.shape_.pixels()), data.shape_);
        }
        return std::move(data);
      },
      data.values_);
}

}  // namespace hone
