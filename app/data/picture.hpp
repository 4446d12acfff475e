#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "hone/latent/data_set.hpp"

namespace hone {

// Levels, row after row: 0 black, 255 white. A pixel has one level, or three: red, green and blue.
struct Picture {
  int rows = 0;
  int cols = 0;
  int channels = 1;
  std::vector<std::uint8_t> levels;
};

// The values that become black and white.
struct LevelRange {
  double low = 0, high = 1;
  bool usual() const { return low == 0 && high == 1; }
};

// 0 and 1 if no value is further outside than `margin`, otherwise the smallest and the largest value. Ignores
// values that are not finite.
LevelRange range_of(std::span<const double> values, double margin = 0);
LevelRange range_of(const DataSet& data, int count);  // of the first `count` data

// The first `count` data in a grid, `across` per row, with a grey line between them. Values outside the range are
// clipped, missing ones are grey. Data of one or three channels.
Picture picture_of(const DataSet& data, int count, int across, LevelRange range = {});

void write_png(const Picture& picture, const std::filesystem::path& file);  // throws Error

// Whether a file's name is that of an image: .png, .jpg or .jpeg, in small or capital letters.
bool is_image_name(const std::string& name);

// Reads a PNG or JPEG image, which its first bytes tell apart: grey or colour, 8 bits per level, no transparency.
// Throws InputError for others.
Picture read_image(std::span<const std::uint8_t> bytes, const std::string& name);
Picture read_png(std::span<const std::uint8_t> bytes, const std::string& name);
Picture read_jpeg(std::span<const std::uint8_t> bytes, const std::string& name);

enum class TextColour { none, grey };

// Two rows of pixels per line, as half blocks in UTF-8. Without colour, pixels over one half are drawn; with `grey`,
// in the terminal's 24 shades. A colour picture is drawn by its brightness.
std::string text_of(const Picture& picture, TextColour colour);

}  // namespace hone
