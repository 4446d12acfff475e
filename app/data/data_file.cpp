#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "app/data/amat.hpp"
#include "app/data/check.hpp"
#include "app/data/csv.hpp"
#include "app/data/data_reader.hpp"
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

bool is_byte(double value) { return value >= 0 && value <= 255 && value == static_cast<std::uint8_t>(value); }

// Bytes if all values are bytes.
template <class T>
Numbers narrowed(std::vector<T> values) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return values;
  if (std::ranges::all_of(values, is_byte)) return Bytes(values.begin(), values.end());
  return values;
}
Numbers narrowed(NpyValues values) {
  return std::visit([](auto& some) { return narrowed(std::move(some)); }, values);
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

Numbers numbers_of(const MatrixMarket& matrix, const std::string& name) {
  if (std::ranges::all_of(matrix.value, is_byte)) return dense<std::uint8_t>(matrix, name);
  return dense<double>(matrix, name);
}

Bytes bytes_of(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_other(file, ignored)) throw InputError(fmt::format("{}: expected a regular file", file.string()));
  const std::string text = read_file(file);
  return {text.begin(), text.end()};
}

NpyMatrix npz_array(const fs::path& file, const std::string& key, Missing missing) {
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
    return read_npy(source, {missing});
  }
  throw InputError(fmt::format("{}: {}; it has {}", file.string(),
                               key.empty() ? "expected the name of an array, FILE.npz:NAME" : "no array '" + key + "'",
                               names.empty() ? "none" : names));
}

// Formats that are read as a whole and then given away in pieces.
class WholeReader final : public DataReader {
 public:
  WholeReader(std::vector<int> sizes, Numbers numbers)
      : sizes_(std::move(sizes)), numbers_(std::move(numbers)), count_(count_of(numbers_, dimension())) {}
  std::vector<int> sizes() const override { return sizes_; }
  Numbers next(int most) override {
    const int begin = done_, count = std::min(most, count_ - done_);
    done_ += count;
    if (count == count_) return std::move(numbers_);
    if (count == 0) return Bytes();
    return std::visit(
        [&](const auto& values) -> Numbers {
          using Values = std::decay_t<decltype(values)>;
          if constexpr (std::is_same_v<Values, BitRows>) {
            BitRows rows(values.dimension());
            rows.append(values, begin, begin + count);
            return rows;
          } else {
            const auto at = [&](int datum) { return values.begin() + std::ptrdiff_t{datum} * dimension(); };
            return Values(at(begin), at(begin + count));
          }
        },
        numbers_);
  }

 private:
  std::vector<int> sizes_;
  Numbers numbers_;
  int count_, done_ = 0;
};

class NpyData final : public DataReader {
 public:
  NpyData(const std::string& name, Missing missing) : source_(fs::path(name)), reader_(source_, {missing}) {}
  std::vector<int> sizes() const override { return reader_.header().shape; }
  bool by_column() const { return reader_.header().fortran_order; }
  Numbers next(int most) override { return narrowed(reader_.next(most)); }

 private:
  ByteSource source_;
  NpyReader reader_;
};

class CsvData final : public DataReader {
 public:
  CsvData(const std::string& name, CsvWanted wanted) : source_(fs::path(name)), reader_(source_, std::move(wanted)) {}
  std::vector<int> sizes() const override { return {reader_.cols()}; }
  Numbers next(int most) override {
    CsvRows rows = reader_.next(most);
    labels_ = std::move(rows.labels);
    return narrowed(std::move(rows.values));
  }
  std::vector<std::string> labels() override { return std::move(labels_); }

 private:
  ByteSource source_;
  CsvReader reader_;
  std::vector<std::string> labels_;
};

class AmatData final : public DataReader {
 public:
  explicit AmatData(const std::string& name) : source_(fs::path(name)), reader_(source_) {}
  std::vector<int> sizes() const override { return {reader_.dimension()}; }
  Numbers next(int most) override { return reader_.next(most); }

 private:
  ByteSource source_;
  AmatReader reader_;
};

class IdxData final : public DataReader {
 public:
  explicit IdxData(const std::string& name) : source_(fs::path(name)), reader_(source_) {
    expect_images(reader_.dimensions(), source_);
  }
  std::vector<int> sizes() const override { return {reader_.dimensions()[1], reader_.dimensions()[2]}; }
  double scale() const override { return 1 / 255.0; }
  Numbers next(int most) override { return reader_.next(most); }

 private:
  ByteSource source_;
  IdxReader reader_;
};

// Images of one size, all grey or all coloured: load(i) gives the i-th file's bytes.
class ImageData final : public DataReader {
 public:
  ImageData(const std::string& name, std::vector<std::string> files, std::function<Bytes(std::size_t)> load)
      : files_(std::move(files)), load_(std::move(load)) {
    if (files_.empty()) throw InputError(fmt::format("{}: no image (.png, .jpg or .jpeg) there", name));
    first_ = read_image(load_(0), files_[0]);
  }
  std::vector<int> sizes() const override { return {first_.rows, first_.cols, first_.channels}; }
  double scale() const override { return 1.0 / 255; }
  Numbers next(int most) override {
    Bytes values;
    for (int count = 0; count < most && done_ < files_.size(); ++count, ++done_) {
      const Picture picture = read_image(load_(done_), files_[done_]);
      expect_alike(picture, files_[done_]);
      values.insert(values.end(), picture.levels.begin(), picture.levels.end());
    }
    return values;
  }

 private:
  void expect_alike(const Picture& picture, const std::string& name) const {
    if (picture.rows != first_.rows || picture.cols != first_.cols)
      throw InputError(fmt::format("{}: {} × {} pixels, but {} has {} × {}; expected images of one size", name,
                                   picture.rows, picture.cols, files_[0], first_.rows, first_.cols));
    if (picture.channels != first_.channels)
      throw InputError(fmt::format("{} is {}, but {} is {}; expected images of one kind", name, kind(picture.channels),
                                   files_[0], kind(first_.channels)));
  }
  static const char* kind(int channels) { return channels == 3 ? "a colour image" : "grey"; }

  std::vector<std::string> files_;
  std::function<Bytes(std::size_t)> load_;
  Picture first_;
  std::size_t done_ = 0;
};

// Whether a path inside a folder or an archive has a part that systems hide or add by themselves: .git, ._cat.png,
// __MACOSX.
bool is_hidden(const fs::path& inside) {
  return std::ranges::any_of(inside,
                             [](const fs::path& part) { return part.string().starts_with('.') || part == "__MACOSX"; });
}

std::unique_ptr<DataReader> folder_of_images(const fs::path& folder) {
  std::set<fs::path> files;
  std::vector<fs::path> left = {folder};
  while (!left.empty()) {
    const fs::path here = left.back();
    left.pop_back();
    std::error_code error;
    for (auto at = fs::directory_iterator(here, error); !error && at != fs::directory_iterator(); at.increment(error)) {
      if (is_hidden(at->path().filename())) continue;
      std::error_code ignored;
      if (at->is_directory(ignored) && !at->is_symlink(ignored))
        left.push_back(at->path());
      else if (is_image_name(at->path().filename().string()))
        files.insert(at->path());
    }
    if (error) throw InputError(fmt::format("{}: cannot be read: {}", here.string(), error.message()));
  }
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.string());
  return std::make_unique<ImageData>(folder.string(), names, [names](std::size_t i) { return bytes_of(names[i]); });
}

// The archive stays in memory as it is.
std::unique_ptr<DataReader> zip_of_images(const fs::path& file) {
  const auto archive = std::make_shared<const Bytes>(bytes_of(file));
  std::vector<ZipEntry> entries = zip_entries(*archive, file.string());
  std::erase_if(entries, [](const ZipEntry& entry) { return is_hidden(entry.name) || !is_image_name(entry.name); });
  std::ranges::sort(entries, {}, &ZipEntry::name);
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) names.push_back(fmt::format("{}:{}", file.string(), entry.name));
  return std::make_unique<ImageData>(file.string(), names, [archive, entries, names](std::size_t i) {
    return unzipped(*archive, entries[i], names[i]);
  });
}

constexpr const char* formats = ".npy, .npz, .csv, .tsv, .mtx, .amat, a folder or .zip of images";

// Refuses common formats that hone does not read, and says how to convert them.
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
          fmt::format("{}: hone does not read {} files; expected {}, or IDX; numpy.save makes a .npy file of an array",
                      name, other, formats));
}

std::unique_ptr<DataReader> idx_data(const std::string& name) {
  try {
    return std::make_unique<IdxData>(name);
  } catch (const InputError& error) {
    if (name.find("idx") != name.npos || name.find("ubyte") != name.npos) throw;
    throw InputError(fmt::format("{}; the name has none of the other endings: {}", error.what(), formats));
  }
}

}  // namespace

std::unique_ptr<DataReader> open_data_file(const std::string& name, const FileRequest& request) {
  const auto whole = [](NpyMatrix matrix) {
    return std::make_unique<WholeReader>(std::move(matrix.shape), narrowed(std::move(matrix.values)));
  };
  const std::size_t key = name.find(".npz:");
  if (key != std::string::npos) return whole(npz_array(name.substr(0, key + 4), name.substr(key + 5), request.missing));
  const std::string extension = extension_of(name);
  if (fs::is_directory(name)) return folder_of_images(name);
  if (extension == ".npz") return whole(npz_array(name, "", request.missing));
  if (extension == ".zip") return zip_of_images(name);
  ByteSource source{fs::path(name)};
  refuse_others(name, extension);
  if (extension == ".npy") {
    auto data = std::make_unique<NpyData>(name, request.missing);
    if (!data->by_column()) return data;
    return std::make_unique<WholeReader>(data->sizes(), data->next(std::numeric_limits<int>::max()));
  }
  if (extension == ".csv" || extension == ".tsv")
    return std::make_unique<CsvData>(name, CsvWanted{request.missing, request.label, request.header});
  if (extension == ".mtx") {
    const MatrixMarket matrix = read_matrix_market(source);
    return std::make_unique<WholeReader>(std::vector<int>{matrix.cols}, numbers_of(matrix, name));
  }
  if (extension == ".amat") return std::make_unique<AmatData>(name);
  if (!request.shape.empty()) throw KeyError("shape", "an IDX file has its own; leave it out");
  return idx_data(name);
}

}  // namespace hone
