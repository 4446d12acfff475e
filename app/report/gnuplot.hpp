#pragma once

#include <filesystem>
#include <string>

namespace hone {

// A figure is CSV data and a gnuplot script, which stay beside the picture, so that a user can restyle it:
//   cd figures && gnuplot NAME.gp
// Writes NAME.gp into `folder` and runs it there; `script` draws, and sets no terminal. Makes NAME.svg and NAME.png.
// Returns false, with script and data in place, where gnuplot is not installed; throws Error where it fails.
struct Figure {
  std::string name;
  int width = 800, height = 600;  // pixels of the PNG file; the SVG file scales
  std::string script;
};
bool draw(const Figure& figure, const std::filesystem::path& folder);

}  // namespace hone
