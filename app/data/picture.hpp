#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hone/latent/data_set.hpp"

namespace hone {

// Grey levels, row after row: 0 black, 255 white.
struct Picture {
  int rows = 0;
  int cols = 0;
  std::vector<std::uint8_t> levels;
};

// The first `count` data side by side, `across` in a row, a grey line between them. A value from 0 to 1 becomes black
// to white; values outside are cut off.
Picture picture_of(const DataSet& data, int count, int across);

void write_png(const Picture& picture, const std::filesystem::path& file);  // throws Error

enum class TextColour { none, grey };

// Two rows of pixels a line, as half blocks in UTF-8. Without colour a pixel over one half is drawn; with `grey`
// the terminal's 24 shades.
std::string text_of(const Picture& picture, TextColour colour);

}  // namespace hone
