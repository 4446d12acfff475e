#include "app/report/contours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/report/gnuplot.hpp"
#include "app/report/text.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct Window {
  double left, right, bottom, top;
};

Window window_of(Toy toy) {
  switch (toy) {
    case Toy::gaussian:
      return {-3.2, 3.2, -3.2, 3.2};
    case Toy::mixture:
      return {-5.5, 4, -5.5, 4};
    case Toy::banana:
      return {-3.6, 3.6, -9.5, 1.5};
  }
  throw Error("unknown toy");
}

constexpr int nodes = 161;  // per side of the grid

// A column of the panel's CSV file: a density on the grid, and how it is drawn.
struct Layer {
  std::string label;
  std::string colour;
  std::vector<double> density;
};

template <class LogDensity>
std::vector<double> on_grid(const Window& window, LogDensity log_density) {
  Matrix<double> points(2, nodes * nodes);
  for (int i = 0; i < nodes; ++i)
    for (int j = 0; j < nodes; ++j) {
      points(0, i * nodes + j) = window.left + (window.right - window.left) * j / (nodes - 1);
      points(1, i * nodes + j) = window.bottom + (window.top - window.bottom) * i / (nodes - 1);
    }
  std::vector<double> value(points.cols());
  log_density(MatrixView<const double>(points), std::span(value));
  for (double& x : value) x = std::exp(x);
  return value;
}

// The objective's name as the legend shows it, and the paper's colours.
std::pair<std::string, std::string> style_of(const std::string& objective) {
  if (objective == name_of(ObjectiveKind::kl)) return {"q by KL", "#1f5fbf"};
  if (objective == name_of(ObjectiveKind::vcd)) return {"q by VCD", "#c8201e"};
  return {"q by Li et al. 2017", "#8a4fb0"};
}

struct Loaded {
  ToyConfig config;
  std::vector<Layer> layers;
  Window window;
};

Loaded load(const ContourPanel& panel) {
  Loaded result;
  for (const auto& folder : panel.runs) {
    ToyConfig config;
    toy_settings(config).read_file(folder / "config.toml");
    const ToyResult run = ToyResult::from_json(read_file(folder / "summary.json"), folder / "summary.json");
    if (result.layers.empty()) {
      result.config = config;
      result.window = window_of(config.target);
      const auto target = make_toy(config.target);
      result.layers.push_back({"target", "#2a8f3c", on_grid(result.window, [&](auto z, auto value) {
                                 target->evaluate(z, Want::value, value, {});
                               })});
    }
    const auto family = starting_family(config);
    if (family->parameters().size() != run.parameters.size())
      throw InputError(fmt::format("{}: does not fit its config.toml", (folder / "summary.json").string()));
    std::ranges::copy(run.parameters, family->parameters().begin());
    auto [label, colour] = style_of(run.objective);
    const std::size_t index = result.layers.size() - 1;
    if (!panel.labels.empty()) label = panel.labels.at(index);
    if (!panel.colours.empty()) colour = panel.colours.at(index);
    result.layers.push_back({label, colour, on_grid(result.window, [&](auto z, auto value) {
                               family->log_density(z, Want::value, value, {});
                             })});
  }
  return result;
}

void write_grid(const Loaded& panel, const std::filesystem::path& path) {
  std::string text = "z1,z2,target";
  for (std::size_t i = 1; i < panel.layers.size(); ++i) text += fmt::format(",q{}", i);
  text += "\n";
  const Window& w = panel.window;
  for (int i = 0; i < nodes; ++i) {
    for (int j = 0; j < nodes; ++j) {
      text += fmt::format("{:.4g},{:.4g}", w.left + (w.right - w.left) * j / (nodes - 1),
                          w.bottom + (w.top - w.bottom) * i / (nodes - 1));
      for (const Layer& layer : panel.layers) text += fmt::format(",{:.4g}", layer.density[i * nodes + j]);
      text += "\n";
    }
    text += "\n";  // gnuplot: a new row of the grid
  }
  write_file(path, text);
}

std::string levels_of(const Layer& layer) {
  std::string levels;
  for (const double share : contour_shares)
    levels += fmt::format("{}{:.6g}", levels.empty() ? "" : ",", density_level(layer.density, share));
  return levels;
}

std::string shares_text() {
  return fmt::format("contours hold {:.0f}, {:.0f}, {:.0f} %", 100 * contour_shares[0], 100 * contour_shares[1],
                     100 * contour_shares[2]);
}

// gnuplot commands for one panel: contour lines into data blocks, then the lines, with a legend below them or none.
std::string panel_commands(const ContourPanel& panel, const Loaded& loaded, bool legend) {
  const Window& w = loaded.window;
  std::string text =
      fmt::format("set encoding utf8\nset title {} noenhanced offset 0,-0.6\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
                  gnuplot_text(panel.title), w.left, w.right, w.bottom, w.top);
  text += "set datafile separator \",\"\nset contour base\nunset surface\nset cntrparam bspline\n";
  for (std::size_t i = 0; i < loaded.layers.size(); ++i)
    text += fmt::format(
        "set cntrparam levels discrete {}\nset table $layer{}\nsplot \"{}.csv\" using 1:2:{} skip 1\nunset table\n",
        levels_of(loaded.layers[i]), i, panel.name, i + 3);
  text += "unset contour\nset datafile separator whitespace\n";
  if (legend) text += "set key below vertical maxcols 1 center Left reverse noenhanced samplen 2\n";
  text += "plot ";
  for (std::size_t i = 0; i < loaded.layers.size(); ++i)
    text += fmt::format("{}$layer{} using 1:2 with lines lw {} lc rgb \"{}\" {}", i ? ", " : "", i, i == 0 ? 2.4 : 1.8,
                        loaded.layers[i].colour, legend ? "title " + gnuplot_text(loaded.layers[i].label) : "notitle");
  if (legend) text += fmt::format(", NaN with points ps 0 title '{}'", shares_text());
  return text + "\n";
}

std::string legend_commands(const std::vector<Layer>& layers) {
  std::string text =
      "unset title\nunset border\nunset tics\nunset xlabel\nunset ylabel\nset key center center samplen 3 spacing 1.6\n"
      "set xrange [0:1]\nset yrange [0:1]\nplot ";
  for (std::size_t i = 0; i < layers.size(); ++i)
    text += fmt::format("{}NaN with lines lw 3 lc rgb \"{}\" title {}", i ? ", " : "", layers[i].colour,
                        gnuplot_text(layers[i].label));
  text += fmt::format(", NaN with lines lc rgb \"white\" title '{}'\n", shares_text());
  return text + "set border\nset tics\nunset key\n";
}

}  // namespace

double density_level(std::vector<double> density, double share) {
  std::ranges::sort(density, std::greater<>());
  const double total = std::accumulate(density.begin(), density.end(), 0.0);
  double sum = 0;
  for (const double value : density) {
    sum += value;
    if (sum >= share * total) return value;
  }
  return 0;
}

bool draw_contours(const std::string& name, const std::vector<ContourPanel>& panels,
                   const std::filesystem::path& folder) {
  const std::string axes =
      "set size square\nset tics out nomirror scale 0.5\nset xlabel \"z_1\" offset 0,0.6\nset ylabel \"z_2\" offset "
      "1.2,0 norotate\nunset key\n";
  if (panels.size() == 1) {
    const Loaded loaded = load(panels.front());
    write_grid(loaded, folder / (panels.front().name + ".csv"));
    const int keys = static_cast<int>(loaded.layers.size()) + 1;
    return draw({.name = name,
                 .width = 440,
                 .height = 460 + 20 * keys,
                 .script = axes + panel_commands(panels.front(), loaded, true) + "reset\n"},
                folder);
  }
  const int cells = static_cast<int>(panels.size()) + 1;  // the last is the legend
  const int columns = std::min(3, cells), rows = (cells + columns - 1) / columns;
  const double width = 360 * columns, height = 370 * rows;  // pixels; margins and gaps are the same for any layout
  std::string text =
      fmt::format("{}set multiplot layout {},{} margins {:.4f},{:.4f},{:.4f},{:.4f} spacing {:.4f},{:.4f}\n", axes,
                  rows, columns, 62 / width, 1 - 12 / width, 62 / height, 1 - 42 / height, 74 / width, 96 / height);
  std::vector<Layer> legend;
  for (const ContourPanel& panel : panels) {
    const Loaded loaded = load(panel);
    write_grid(loaded, folder / (panel.name + ".csv"));
    text += panel_commands(panel, loaded, false);
    if (loaded.layers.size() > legend.size()) legend = loaded.layers;
  }
  text += legend_commands(legend) + "unset multiplot\nreset\n";
  return draw({.name = name, .width = static_cast<int>(width), .height = static_cast<int>(height), .script = text},
              folder);
}

}  // namespace hone
