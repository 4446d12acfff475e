#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/data/amat.hpp"
#include "app/data/check.hpp"
#include "app/data/csv.hpp"
#include "app/data/load.hpp"
#include "app/data/matrix_market.hpp"
#include "app/data/npy.hpp"
#include "app/data/picture.hpp"
#include "app/data/zip.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

// The extension of a file without .gz.
std::string extension_of(fs::path file) {
  if (file.extension() == ".gz") file.replace_extension();
  return file.extension().string();
}

// Rows and columns, and with a third size, 1 or 3, channels; none if the sizes are those of no image.
std::optional<ImageShape> image_shape(std::span<const int> sizes) {
  if (sizes.size() == 2) return ImageShape{sizes[0], sizes[1]};
  if (sizes.size() == 3 && (sizes[2] == 1 || sizes[2] == 3)) return ImageShape{sizes[0], sizes[1], sizes[2]};
  return {};
}

// The shape that is asked for, or that of the file's data: one row unless they are images.
ImageShape shape_of(const std::vector<int>& in_file, int dimension, std::span<const int> wanted) {
  if (wanted.empty()) return image_shape(in_file).value_or(ImageShape{1, dimension});
  const auto shape = image_shape(wanted);
  if (!shape || std::int64_t{shape->rows} * shape->cols * shape->channels != dimension)
    throw KeyError("shape", fmt::format("expected [rows, columns], or [rows, columns, 3] for colour images, that make "
                                        "up the {} values of a datum",
                                        dimension));
  return *shape;
}

DataSet data_of(NpyMatrix matrix, std::span<const int> wanted) {
  const ImageShape shape = shape_of(matrix.shape, matrix.cols, wanted);
  if (auto* bytes = std::get_if<Bytes>(&matrix.values)) return packed_if_binary(DataSet(std::move(*bytes), shape, 1));
  if (auto* floats = std::get_if<std::vector<float>>(&matrix.values))
    return packed_if_binary(DataSet(std::move(*floats), shape));
  return packed_if_binary(DataSet(std::move(std::get<std::vector<double>>(matrix.values)), shape));
}

bool is_byte(double value) { return value >= 0 && value <= 255 && value == static_cast<std::uint8_t>(value); }

DataSet data_of(CsvRows table, std::span<const int> wanted) {
  const ImageShape shape = shape_of({}, table.cols, wanted);
  if (std::ranges::all_of(table.values, is_byte))
    return packed_if_binary(DataSet(Bytes(table.values.begin(), table.values.end()), shape, 1));
  return DataSet(std::move(table.values), shape);
}

template <class T>
std::vector<T> dense(const MatrixMarket& matrix, const std::string& name) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto cols = static_cast<std::size_t>(matrix.cols);
  if (std::int64_t{matrix.rows} * matrix.cols > most)
    throw InputError(fmt::format(
        "{}: {} × {} values are too many, as zeros are kept too; the Python package takes SciPy's sparse matrices",
        name, matrix.rows, matrix.cols));
  std::vector<T> values(static_cast<std::size_t>(matrix.rows) * cols);
  std::vector<bool> seen(values.size());
  for (std::size_t i = 0; i < matrix.value.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(matrix.row[i]) * cols + static_cast<std::size_t>(matrix.col[i]);
    if (seen[at])
      throw InputError(fmt::format("{}: row {}, column {} comes twice", name, matrix.row[i] + 1, matrix.col[i] + 1));
    seen[at] = true;
    values[at] = static_cast<T>(matrix.value[i]);
  }
  return values;
}

DataSet data_of(const MatrixMarket& matrix, const std::string& name, std::span<const int> wanted) {
  const ImageShape shape = shape_of({}, matrix.cols, wanted);
  if (std::ranges::all_of(matrix.value, is_byte))
    return packed_if_binary(DataSet(dense<std::uint8_t>(matrix, name), shape, 1));
  return DataSet(dense<double>(matrix, name), shape);
}

Bytes bytes_of(const fs::path& file) {
  const std::string text = read_file(file);
  return {text.begin(), text.end()};
}

DataSet npz_array(const fs::path& file, const std::string& key, const FileRequest& request) {
  const Bytes archive = bytes_of(file);
  const std::vector<ZipEntry> entries = zip_entries(archive, file.string());
  std::string names;
  for (const ZipEntry& entry : entries) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    names += (names.empty() ? "" : ", ") + name;
    if (key.empty() ? entries.size() > 1 : name != key) continue;
    const std::string origin = fmt::format("{}:{}", file.string(), name);
    const Bytes bytes = unzipped(archive, entry, origin);
    ByteSource source(bytes, origin);
    return data_of(read_npy(source, {request.missing}), request.shape);
  }
  throw InputError(fmt::format("{}: {}; it has {}", file.string(),
                               key.empty() ? "expected the name of an array, FILE.npz:NAME" : "no array '" + key + "'",
                               names.empty() ? "none" : names));
}

// Images of one size, all grey or all coloured.
class Images {
 public:
  void add(const Bytes& bytes, const std::string& name) {
    const Picture picture = read_image(bytes, name);
    if (count_++ == 0) first_ = name, shape_ = {picture.rows, picture.cols, picture.channels};
    if (picture.rows != shape_.rows || picture.cols != shape_.cols)
      throw InputError(fmt::format("{}: {} × {} pixels, but {} has {} × {}; expected images of one size", name,
                                   picture.rows, picture.cols, first_, shape_.rows, shape_.cols));
    if (picture.channels != shape_.channels)
      throw InputError(fmt::format("{} is {}, but {} is {}; expected images of one kind", name, kind(picture.channels),
                                   first_, kind(shape_.channels)));
    values_.insert(values_.end(), picture.levels.begin(), picture.levels.end());
  }

  DataSet data(const std::string& name, std::span<const int> wanted) {
    if (count_ == 0) throw InputError(fmt::format("{}: no image (.png, .jpg or .jpeg) there", name));
    const std::vector<int> sizes = {shape_.rows, shape_.cols, shape_.channels};
    return DataSet(std::move(values_), shape_of(sizes, shape_.pixels(), wanted), 1.0 / 255);
  }

 private:
  static const char* kind(int channels) { return channels == 3 ? "a colour image" : "grey"; }

  int count_ = 0;
  ImageShape shape_;
  std::string first_;
  Bytes values_;
};

DataSet folder_of_images(const fs::path& folder, std::span<const int> wanted) {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (is_image_name(entry.path().filename().string())) files.insert(entry.path());
  Images images;
  for (const fs::path& file : files) images.add(bytes_of(file), file.string());
  return images.data(folder.string(), wanted);
}

DataSet zip_of_images(const fs::path& file, std::span<const int> wanted) {
  const Bytes archive = bytes_of(file);
  std::vector<ZipEntry> entries = zip_entries(archive, file.string());
  std::ranges::sort(entries, {}, &ZipEntry::name);
  Images images;
  for (const ZipEntry& entry : entries) {
    const std::string name = fmt::format("{}:{}", file.string(), entry.name);
    if (is_image_name(entry.name)) images.add(unzipped(archive, entry, name), name);
  }
  return images.data(file.string(), wanted);
}

// Files that people have and that are read elsewhere: how to come from them to one of ours.
void refuse_others(const std::string& name, const std::string& extension) {
  if (is_image_name(name))
    throw InputError(fmt::format("{}: is a single image; expected a folder or a .zip of images", name));
  for (const auto& [other, reader] : {std::pair(".parquet", "read_parquet"), std::pair(".feather", "read_feather"),
                                      std::pair(".xlsx", "read_excel"), std::pair(".xls", "read_excel")})
    if (extension == other)
      throw InputError(
          fmt::format("{}: hone does not read {} files; pandas makes a .csv file of it: python3 -c \"import pandas; "
                      "pandas.{}('{}').to_csv('{}', index=False)\"; or give the table to the Python package",
                      name, other, reader, name, fs::path(name).replace_extension(".csv").string()));
  for (const char* other : {".h5", ".hdf5", ".mat", ".pkl", ".pickle", ".pt", ".pth", ".nc", ".json", ".txt", ".jsonl"})
    if (extension == other)
      throw InputError(
          fmt::format("{}: hone does not read {} files; expected .npy, .npz, .csv, .tsv, .mtx, .amat, a "
                      "folder or .zip of images, or IDX; numpy.save makes a .npy file of an array",
                      name, other));
}

}  // namespace

DataSet read_data_file(const std::string& name, const FileRequest& request, std::vector<std::string>* labels) {
  const std::vector<int>& shape = request.shape;
  const std::size_t key = name.find(".npz:");
  if (key != std::string::npos) return npz_array(name.substr(0, key + 4), name.substr(key + 5), request);
  const std::string extension = extension_of(name);
  if (fs::is_directory(name)) return folder_of_images(name, shape);
  if (extension == ".npz") return npz_array(name, "", request);
  if (extension == ".zip") return zip_of_images(name, shape);
  ByteSource source{fs::path(name)};
  refuse_others(name, extension);
  if (extension == ".npy") return data_of(read_npy(source, {request.missing}), shape);
  if (extension == ".csv" || extension == ".tsv") {
    CsvRows table = read_csv(source, {request.missing, request.label});
    if (labels) *labels = std::move(table.labels);
    return data_of(std::move(table), shape);
  }
  if (extension == ".mtx") return data_of(read_matrix_market(source), name, shape);
  if (extension == ".amat") {
    BitRows rows = read_amat(source);
    const ImageShape found = shape_of({}, rows.dimension(), shape);
    return DataSet(std::move(rows), found);
  }
  if (!shape.empty()) throw KeyError("shape", "an IDX file has its own; leave it out");
  return images_of(read_idx(source), source);
}

}  // namespace hone
