#include "app/data/data_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "hone/base/error.hpp"

namespace hone {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Rows and columns, and with a third size, 1 or 3, channels; one plane of grey levels may also come first. None if the
// sizes are those of no image.
std::optional<ImageShape> image_shape(std::span<const int> sizes) {
  if (sizes.size() == 2) return ImageShape{sizes[0], sizes[1]};
  if (sizes.size() == 3 && (sizes[2] == 1 || sizes[2] == 3)) return ImageShape{sizes[0], sizes[1], sizes[2]};
  if (sizes.size() == 3 && sizes[0] == 1) return ImageShape{sizes[1], sizes[2]};
  return {};
}

// Throws KeyError for data with one plane per colour, as PyTorch has them.
void refuse_planes(const std::vector<int>& sizes, const std::string& otherwise) {
  if (sizes.size() != 3 || sizes[0] != 3) return;
  throw KeyError("shape",
                 fmt::format("the file's data are ({}, {}, {}), one plane per colour; expected the three values of a "
                             "pixel beside each other, ({}, {}, 3): numpy.transpose(x, (0, 2, 3, 1)){}",
                             sizes[0], sizes[1], sizes[2], sizes[1], sizes[2], otherwise));
}

DataSet as_they_are(Numbers numbers, ImageShape shape, double scale) {
  if (auto* bits = std::get_if<BitRows>(&numbers)) return DataSet(std::move(*bits), shape);
  if (auto* bytes = std::get_if<Bytes>(&numbers)) return DataSet(std::move(*bytes), shape, scale);
  if (auto* floats = std::get_if<std::vector<float>>(&numbers)) return DataSet(std::move(*floats), shape);
  return DataSet(std::move(std::get<std::vector<double>>(numbers)), shape);
}

}  // namespace

int DataReader::dimension() const {
  int product = 1;
  for (const int size : sizes()) product *= size;
  return product;
}

ImageShape shape_of(const DataReader& reader, const std::vector<int>& wanted, ColourPlanes planes) {
  const std::vector<int> sizes = reader.sizes();
  if (wanted.empty()) {
    const auto shape = image_shape(sizes);
    if (!shape && planes == ColourPlanes::refused)
      refuse_planes(sizes, fmt::format("; if they are no images: shape = [1, {}]", reader.dimension()));
    return shape.value_or(ImageShape{1, reader.dimension()});
  }
  const auto shape = image_shape(wanted);
  if (shape && shape->channels == 3 && sizes != wanted) refuse_planes(sizes, "");
  if (!shape || std::int64_t{shape->rows} * shape->cols * shape->channels != reader.dimension())
    throw KeyError("shape", fmt::format("expected [rows, columns], or [rows, columns, 3] for colour images, that make "
                                        "up the {} values of a datum",
                                        reader.dimension()));
  return *shape;
}

StoredAs form_of(const Numbers& numbers, double scale) {
  if (scale != 1) return StoredAs::bytes;  // grey levels stay grey levels
  return std::visit(
      [&](const auto& values) {
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, BitRows>)
          return StoredAs::bits;
        else
          return std::ranges::all_of(values, [](auto x) { return x == 0 || x == 1; })
                     ? StoredAs::bits
                     : static_cast<StoredAs>(numbers.index());
      },
      numbers);
}

int count_of(const Numbers& numbers, int dimension) {
  if (const auto* bits = std::get_if<BitRows>(&numbers)) return bits->size();
  const auto size = std::visit([](const auto& values) { return static_cast<std::size_t>(values.size()); }, numbers);
  return static_cast<int>(size / static_cast<std::size_t>(dimension));
}

DataSet data_of(Numbers numbers, ImageShape shape, double scale, StoredAs form) {
  if (form == StoredAs::bits) return packed_if_binary(as_they_are(std::move(numbers), shape, scale));
  if (const auto* bytes = std::get_if<Bytes>(&numbers)) {
    if (form == StoredAs::floats) return DataSet(std::vector<float>(bytes->begin(), bytes->end()), shape);
    if (form == StoredAs::doubles) return DataSet(std::vector<double>(bytes->begin(), bytes->end()), shape);
  }
  return as_they_are(std::move(numbers), shape, scale);
}

DataSet read_data_file(const std::string& name, const FileRequest& request, std::vector<std::string>* labels) {
  const auto reader = open_data_file(name, request);
  Numbers numbers = reader->next(std::numeric_limits<int>::max());
  if (labels) *labels = reader->labels();
  if (count_of(reader->next(1), reader->dimension()) > 0)
    throw InputError(fmt::format("{}: expected at most {} data", name, std::numeric_limits<int>::max()));
  const StoredAs form = form_of(numbers, reader->scale());
  return data_of(std::move(numbers), shape_of(*reader, request.shape, request.planes), reader->scale(), form);
}

}  // namespace hone
