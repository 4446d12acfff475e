#include "app/data/picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

constexpr std::uint8_t line_level = 96;

std::size_t position(const Picture& picture, int row, int col) {
  return (static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.cols) + static_cast<std::size_t>(col)) *
         static_cast<std::size_t>(picture.channels);
}

// The brightness of a pixel; black below the last row of a picture with an odd number of rows.
std::uint8_t level(const Picture& picture, int row, int col) {
  if (row >= picture.rows) return 0;
  const std::uint8_t* pixel = picture.levels.data() + position(picture, row, col);
  if (picture.channels == 1) return *pixel;
  return static_cast<std::uint8_t>(std::lround(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]));
}

int shade(std::uint8_t value) { return 232 + value * 23 / 255; }

}  // namespace

LevelRange range_of(std::span<const double> values, double margin) {
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    least = std::min(least, x);
    largest = std::max(largest, x);
  }
  if (least >= -margin && largest <= 1 + margin) return {};
  return least < largest ? LevelRange{least, largest} : LevelRange{least - 1, least + 1};  // all alike: grey
}

LevelRange range_of(const DataSet& data, int count) {
  std::vector<int> indices(static_cast<std::size_t>(std::min(count, data.size())));
  std::iota(indices.begin(), indices.end(), 0);
  Matrix<double> values(data.dimension(), static_cast<int>(indices.size()));
  data.expand(indices, values.view());
  return range_of(values.view().flat());
}

Picture picture_of(const DataSet& data, int count, int across, LevelRange range) {
  if (across < 1) throw InputError(fmt::format("{} images per row: expected at least 1", across));
  if (count < 1 || count > data.size())
    throw InputError(fmt::format("{} images: expected a number from 1 to {}", count, data.size()));
  std::vector<int> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  Matrix<float> values(data.dimension(), count);
  data.expand(indices, values.view());

  const auto [rows, cols, channels] = data.shape();
  if (channels != 1 && channels != 3)
    throw InputError(fmt::format("images of {} channels cannot be drawn; expected 1 or 3", channels));
  const auto low = static_cast<float>(range.low), width_of_range = static_cast<float>(range.high - range.low);
  const auto level_of = [&](float x) {
    return std::isnan(x) ? 0.5f : std::clamp((x - low) / width_of_range, 0.0f, 1.0f);
  };
  across = std::min(across, count);
  const int down = (count + across - 1) / across;
  Picture picture{.rows = down * (rows + 1) - 1, .cols = across * (cols + 1) - 1, .channels = channels, .levels = {}};
  picture.levels.assign(position(picture, picture.rows, 0), line_level);
  for (int image = 0; image < count; ++image)
    for (int i = 0; i < rows; ++i) {
      const int width = cols * channels;
      const std::size_t begin = position(picture, image / across * (rows + 1) + i, image % across * (cols + 1));
      for (int j = 0; j < width; ++j)
        picture.levels[begin + static_cast<std::size_t>(j)] =
            static_cast<std::uint8_t>(std::lround(255 * level_of(values(i * width + j, image))));
    }
  return picture;
}

void write_png(const Picture& picture, const std::filesystem::path& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.cols);
  image.height = static_cast<png_uint_32>(picture.rows);
  image.format = picture.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::vector<std::uint8_t> bytes;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  bytes.resize(size);
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.levels.data(), 0, nullptr))
    throw Error(fmt::format("{}: the PNG cannot be encoded: {}", file.string(), image.message));
  bytes.resize(size);
  write_file(file, bytes);
}

bool is_image_name(const std::string& name) {
  std::string extension = std::filesystem::path(name).extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

Picture read_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  const bool jpeg = bytes.size() > 1 && bytes[0] == 0xFF && bytes[1] == 0xD8;
  return jpeg ? read_jpeg(bytes, name) : read_png(bytes, name);
}

Picture read_png(std::span<const std::uint8_t> bytes, const std::string& name) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto refuse = [&](const std::string& what) {
    png_image_free(&image);
    throw InputError(fmt::format("{}: {}", name, what));
  };
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
    refuse(fmt::format("not a PNG or JPEG image: {}", image.message));
  if (image.format & (PNG_FORMAT_FLAG_ALPHA | PNG_FORMAT_FLAG_LINEAR))
    refuse("expected an image of 8 bits per level, without transparency; convert it first");
  if (image.width > 8192 || image.height > 8192) refuse("expected at most 8192 × 8192 pixels");
  const bool coloured = image.format & PNG_FORMAT_FLAG_COLOR;
  image.format = coloured ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Picture picture{.rows = static_cast<int>(image.height),
                  .cols = static_cast<int>(image.width),
                  .channels = coloured ? 3 : 1,
                  .levels = {}};
  picture.levels.resize(PNG_IMAGE_SIZE(image));
  if (!png_image_finish_read(&image, nullptr, picture.levels.data(), 0, nullptr))
    refuse(fmt::format("a damaged PNG image: {}", image.message));
  return picture;
}

std::string text_of(const Picture& picture, TextColour colour) {
  std::string text;
  for (int i = 0; i < picture.rows; i += 2) {
    for (int j = 0; j < picture.cols; ++j) {
      const std::uint8_t upper = level(picture, i, j);
      const std::uint8_t lower = level(picture, i + 1, j);
      if (colour == TextColour::grey) {
        text += fmt::format("\x1b[38;5;{};48;5;{}m▀", shade(upper), shade(lower));
      } else {
        text += upper > 127 ? (lower > 127 ? "█" : "▀") : (lower > 127 ? "▄" : " ");
      }
    }
    text += colour == TextColour::grey ? "\x1b[0m\n" : "\n";
  }
  return text;
}

}  // namespace hone
