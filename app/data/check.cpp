#include "app/data/check.hpp"

#include <fmt/format.h>

#include "app/data/amat.hpp"
#include "hone/base/error.hpp"
#include "hone/base/sha256.hpp"

namespace hone {

void expect_images(const std::vector<int>& dimensions, const ByteSource& source) {
  if (dimensions.size() != 3)
    source.fail(3, fmt::format("expected images, an array of 3 dimensions, found {}", dimensions.size()));
}

DataSet images_of(IdxArray array, const ByteSource& source) {
  expect_images(array.dimensions, source);
  return DataSet(std::move(array.values), {array.dimensions[1], array.dimensions[2]}, 1 / 255.0);
}

DataSet read_known_file(const DataSetInfo& info, const DataFile& file, const std::filesystem::path& path) {
  ByteSource source(path);
  DataSet data = file.format == FileFormat::idx ? images_of(read_idx(source), source)
                                                : DataSet(read_amat(source, info.shape.pixels()), info.shape);
  const ImageShape shape = data.shape();
  if (data.size() != file.items || shape.rows != info.shape.rows || shape.cols != info.shape.cols)
    throw InputError(fmt::format("{}: expected {} images of {} × {} pixels for '{}', found {} of {} × {}",
                                 path.string(), file.items, info.shape.rows, info.shape.cols, info.name, data.size(),
                                 shape.rows, shape.cols));
  return data;
}

std::string content_sha256(const std::filesystem::path& path) {
  ByteSource source(path);
  Sha256 sum;
  std::vector<std::uint8_t> buffer(1 << 16);
  while (const std::size_t got = source.read(buffer)) sum.update(std::span(buffer).first(got));
  return sum.hex();
}

void check_file(const DataSetInfo& info, const DataFile& file, const std::filesystem::path& path) {
  read_known_file(info, file, path);
  if (file.sha256.empty()) return;
  const std::string found = content_sha256(path);
  if (found != file.sha256)
    throw InputError(fmt::format("{}: wrong checksum: expected the content's sha256 {}, found {}", path.string(),
                                 file.sha256, found));
}

}  // namespace hone
