#include "app/report/latent_figure.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <sstream>
#include <vector>

#include "app/report/gnuplot.hpp"
#include "app/report/text.hpp"
#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_labels = 20;  // others share a colour
constexpr std::array colours = {"#1f6fc4", "#cc3b3b", "#2a9156", "#b7791f", "#7c53b8",
                                "#138a9c", "#bd4f8b", "#66758a", "#8fb339", "#e0762f"};

// label → lines "x,y"; labels that are numbers in their order.
struct ByLabel {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto number = [](const std::string& text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (number(a) && number(b) && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  }
};
using Clouds = std::map<std::string, std::string, ByLabel>;

Clouds clouds_in(const fs::path& file) {
  std::istringstream lines(read_file(file));
  std::string line;
  std::getline(lines, line);
  if (line != "x,y,label") throw InputError(fmt::format("{}: expected the columns x,y,label", file.string()));
  Clouds clouds;
  while (std::getline(lines, line)) {
    double x = 0, y = 0;
    int end = 0;
    if (std::sscanf(line.c_str(), "%lf,%lf,%n", &x, &y, &end) != 2 || end == 0)
      throw InputError(fmt::format("{}: expected rows x,y,label", file.string()));
    clouds[line.substr(static_cast<std::size_t>(end))] += fmt::format("{:.6g},{:.6g}\n", x, y);
  }
  return clouds;
}

}  // namespace

std::optional<LatentFigure> draw_latent(const fs::path& from, const fs::path& to, const std::string& name) {
  std::error_code ignored;
  if (!fs::exists(from / "latent.json", ignored)) return {};
  const Json json = parse_json(read_file(from / "latent.json"));
  for (const char* key : {"split", "x", "y"})
    if (!json.is_object() || !json.contains(key) || !json[key].is_string())
      throw InputError("figures/latent.json: expected an object with split, count, x and y");
  const Clouds clouds = clouds_in(from / "latent.csv");
  std::string data, plot;
  std::size_t i = 0;
  const bool labelled = clouds.size() > 1;
  for (const auto& [label, points] : clouds) {
    data += fmt::format("# {}\n{}\n\n", gnuplot_text(label), points);
    const bool own = i < most_labels;
    plot += fmt::format("{}'{}_points.csv' index {} using 1:2 with points pt {} ps 0.45 lc rgb '{}' {}",
                        plot.empty() ? "plot " : ", \\\n     ", name, i, own && i >= colours.size() ? 9 : 7,
                        own ? colours[i % colours.size()] : "#a0a0a0",
                        labelled && own ? "title " + gnuplot_text(label.empty() ? "no label" : label) : "notitle");
    ++i;
  }
  write_file(to / (name + "_points.csv"), data);
  const std::size_t keys = labelled ? (std::min(clouds.size(), most_labels) + 4) / 5 : 0;
  const std::string script = fmt::format(
      "set encoding utf8\nset datafile separator ','\nset border 3\nset tics out nomirror scale 0.5\n"
      "set xlabel {} noenhanced\nset ylabel {} noenhanced\nset key {}\n{}\nreset\n",
      gnuplot_text(json["x"].get<std::string>()), gnuplot_text(json["y"].get<std::string>()),
      labelled ? "above horizontal maxcols 5 left Left reverse noenhanced samplen 1 font ',11'" : "off", plot);
  LatentFigure figure;
  figure.drawn = draw({.name = name, .width = 480, .height = 380 + 18 * static_cast<int>(keys), .script = script}, to);
  const double count = json.contains("count") && json["count"].is_number() ? json["count"].get<double>() : 0;
  figure.caption = fmt::format("Means of q(z | x) for {} {} data{}.", count_text(count),
                               json["split"].get<std::string>(), labelled ? ", coloured by label" : "");
  figure.alternative = fmt::format("{} Across: {}; upwards: {}.", figure.caption, json["x"].get<std::string>(),
                                   json["y"].get<std::string>());
  return figure;
}

}  // namespace hone
