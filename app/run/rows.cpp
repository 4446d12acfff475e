#include "app/run/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "app/data/picture.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

bool is_npy(const fs::path& path) { return path.extension() == ".npy"; }

void refuse_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw InputError(fmt::format("--out: {}: is a folder; expected the name of a file", path.string()));
}

}  // namespace

void refuse_to_replace(const fs::path& input, const fs::path& out, const std::string& flag) {
  std::error_code ignored;
  if (!out.empty() && fs::equivalent(input, out, ignored))
    throw InputError(fmt::format("{}: {} is the file of data itself; choose another name", flag, out.string()));
}

std::string npy_header(const std::string& type, std::span<const std::int64_t> shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.pop_back();  // "(5,)"
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  constexpr std::size_t before = 10;  // magic number, version, length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header = std::string("\x93NUMPY\x01", 7) + '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::vector<std::string> numbered(const std::string& name, int count) {
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) names.push_back(fmt::format("{}_{}", name, i));
  return names;
}

RowFile::RowFile(const fs::path& path, std::FILE* otherwise, Layout layout)
    : path_(path), file_(otherwise), layout_(std::move(layout)) {
  if (!path_.empty()) {
    check_name(path_);
    unfinished_ = unfinished_name(path_);
    file_ = std::fopen(unfinished_.c_str(), "wb");
    if (!file_) throw InputError(fmt::format("--out: {}: cannot be written: {}", path_.string(), std::strerror(errno)));
  }
  if (is_npy(path_)) {
    std::vector<std::int64_t> shape = {layout_.rows};
    shape.insert(shape.end(), layout_.shape.begin(), layout_.shape.end());
    const std::string header = npy_header(layout_.type == NumberType::float32 ? "<f4" : "<f8", shape);
    write(header.data(), header.size());
  } else {
    const std::string header = fmt::format("{}\n", fmt::join(layout_.columns, ","));
    write(header.data(), header.size());
  }
}

void RowFile::check_name(const fs::path& path) {
  if (!is_npy(path) && path.extension() != ".csv")
    throw InputError(fmt::format("--out: {}: expected a name that ends in .npy or .csv", path.string()));
  refuse_folder(path);
}

RowFile::~RowFile() {
  if (path_.empty() || !file_) return;
  std::fclose(file_);
  std::error_code ignored;
  fs::remove(unfinished_, ignored);
}

void RowFile::write(const void* bytes, std::size_t size) {
  if (std::fwrite(bytes, 1, size, file_) != size)
    throw Error(fmt::format("{}: writing failed: {}", path_.empty() ? "standard output" : path_.string(),
                            std::strerror(errno)));
}

void RowFile::row(std::span<const double> values) {
  ++written_;
  if (is_npy(path_) && layout_.type == NumberType::float64) return write(values.data(), values.size_bytes());
  if (is_npy(path_)) {
    const std::vector<float> narrow(values.begin(), values.end());
    return write(narrow.data(), narrow.size() * sizeof(float));
  }
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", values[i], i + 1 < values.size() ? "," : "\n");
  write(text.data(), text.size());
}

void RowFile::close() {
  if (written_ != layout_.rows) throw Error("a table was closed before its last row");
  if (path_.empty()) return;
  std::FILE* file = std::exchange(file_, nullptr);
  const bool good = std::fclose(file) == 0;
  if (!good) {
    std::error_code ignored;
    fs::remove(unfinished_, ignored);
    throw Error(fmt::format("{}: writing failed: {}", path_.string(), std::strerror(errno)));
  }
  place_file(unfinished_, path_);
}

PictureFile::PictureFile(fs::path path, ImageShape shape, int count, std::function<void(const std::string&)> say)
    : path_(std::move(path)), shape_(shape), say_(std::move(say)) {
  constexpr int most = 10'000;
  if (!shape.drawable())
    throw InputError(
        fmt::format("--out: {}: the data are no images; expected a name that ends in .npy or .csv", path_.string()));
  if (count > most)
    throw InputError(fmt::format("--out: {}: {} images are too many for one picture; expected at most {}",
                                 path_.string(), count, most));
  refuse_folder(path_);
  if (path_.has_parent_path() && !fs::is_directory(path_.parent_path()))
    throw InputError(fmt::format("--out: {}: there is no such folder", path_.string()));
}

void PictureFile::row(std::span<const double> values) { values_.insert(values_.end(), values.begin(), values.end()); }

void PictureFile::close() {
  constexpr double margin = 0.5;  // numbers of a Gaussian model may leave the range a little; the picture clips them
  const LevelRange range = range_of(values_, margin);
  const DataSet images(std::move(values_), shape_);
  const int across = static_cast<int>(std::ceil(std::sqrt(images.size())));
  write_png(picture_of(images, images.size(), across, range), path_);
  if (say_ && !range.usual())
    say_(fmt::format("{}: black is {:.4g}, white is {:.4g}", path_.string(), range.low, range.high));
}

}  // namespace hone
