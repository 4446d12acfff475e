#pragma once

#include <filesystem>
#include <string>

namespace hone {

// A figure is CSV data and a gnuplot script. Both stay next to the picture, so that a user can restyle it:
//   cd figures && gnuplot NAME.gp
// Writes NAME.gp into `folder` and runs it there, which makes NAME.svg and NAME.png. `script` draws and sets no
// terminal. Returns false, with script and data in place, if gnuplot is not installed; throws Error if it fails.
struct Figure {
  std::string name;
  int width = 800, height = 600;  // pixels of the PNG file; the SVG file scales
  std::string script;
};
bool draw(const Figure& figure, const std::filesystem::path& folder);

}  // namespace hone
