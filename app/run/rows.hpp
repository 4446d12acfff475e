#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hone/latent/data_set.hpp"

namespace hone {

// Takes rows of numbers one at a time.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual void row(std::span<const double> values) = 0;
  virtual void close() = 0;  // after all rows; throws Error, for instance if the disk is full
};

// Throws InputError if `out`, the value of `flag`, is the file of `input`, which would be lost.
void refuse_to_replace(const std::filesystem::path& input, const std::filesystem::path& out, const std::string& flag);

enum class NumberType { float32, float64 };  // of .npy files; CSV has as many digits as the number needs

// Rows of numbers on their way into a .npy or .csv file, a few at a time: they need not fit into memory. The file has
// its name only when it is complete.
class RowFile final : public Rows {
 public:
  struct Layout {
    int rows = 0;
    std::vector<int> shape;            // of a row; the .npy array is (rows, shape…)
    std::vector<std::string> columns;  // of the CSV file, as many as a row has numbers
    NumberType type = NumberType::float64;
  };

  // Throws InputError if the name ends in neither .npy nor .csv, or if there is no such folder. An empty path: CSV on
  // `otherwise`.
  RowFile(const std::filesystem::path& path, std::FILE* otherwise, Layout layout);
  static void check_name(const std::filesystem::path& path);  // refuses these names, and folders
  ~RowFile() override;                                        // removes an incomplete file
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  void row(std::span<const double> values) override;
  void close() override;

 private:
  void write(const void* bytes, std::size_t size);

  std::filesystem::path path_, unfinished_;
  std::FILE* file_;
  Layout layout_;
  int written_ = 0;
};

// Images on their way into one PNG file, in a grid that is nearly square.
class PictureFile final : public Rows {
 public:
  // Throws InputError if the data are no images, or too many. `say` is told which values are black and white, unless
  // they are 0 and 1.
  PictureFile(std::filesystem::path path, ImageShape shape, int count,
              std::function<void(const std::string&)> say = {});
  void row(std::span<const double> values) override;
  void close() override;

 private:
  std::filesystem::path path_;
  ImageShape shape_;
  std::function<void(const std::string&)> say_;
  std::vector<double> values_;
};

// The header of a .npy file, version 1.0, for numbers of one type ("<f8", "<i8") in an array of this shape.
std::string npy_header(const std::string& type, std::span<const std::int64_t> shape);

// "z_1", "z_2", …
std::vector<std::string> numbered(const std::string& name, int count);

}  // namespace hone
