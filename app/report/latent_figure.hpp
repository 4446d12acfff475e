#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hone {

// The figure "latent" of a training run: means of q in two dimensions, coloured by label. `from` holds latent.csv and
// latent.json; the figure goes to `to`. Nothing if the run has none; `drawn` is false if gnuplot is not installed.
// Throws InputError if the files are damaged.
struct LatentFigure {
  bool drawn = true;
  std::string alternative, caption;
};
std::optional<LatentFigure> draw_latent(const std::filesystem::path& from, const std::filesystem::path& to,
                                        const std::string& name);

}  // namespace hone
