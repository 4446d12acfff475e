#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace hone {

// label → lines "x,y"; labels that are numbers in their order.
struct LabelOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

// What latent.json and latent.csv say. Throws InputError if they are damaged.
struct LatentPoints {
  std::string split, x, y;  // the part of the data, and the axes in words
  double count = 0;
  std::map<std::string, std::string, LabelOrder> clouds;
};
LatentPoints latent_points_in(const std::string& json, const std::string& csv);

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
