#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
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

// The first `count` data in a grid, `across` per row, with a grey line between them. Values from 0 to 1 become black
// to white; values outside are clipped.
Picture picture_of(const DataSet& data, int count, int across);

void write_png(const Picture& picture, const std::filesystem::path& file);  // throws Error

// Reads a grey image of 8 bits per pixel. Throws InputError for others.
Picture read_png(std::span<const std::uint8_t> bytes, const std::string& name);

enum class TextColour { none, grey };

// Two rows of pixels per line, as half blocks in UTF-8. Without colour, pixels over one half are drawn; with `grey`,
// in the terminal's 24 shades.
std::string text_of(const Picture& picture, TextColour colour);

}  // namespace hone
