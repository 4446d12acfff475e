#include "app/report/latent_figure.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
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

}  // namespace

bool LabelOrder::operator()(const std::string& a, const std::string& b) const {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) && number(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

LatentPoints latent_points_in(const std::string& json, const std::string& csv) {
  const Json about = parse_json(json);
  const auto word = [&](const char* key) {
    if (!about.is_object() || !about.contains(key) || !about[key].is_string())
      throw InputError("figures/latent.json: expected an object with split, count, x and y");
    return about[key].get<std::string>();
  };
  LatentPoints points{.split = word("split"), .x = word("x"), .y = word("y"), .clouds = {}};
  if (about.contains("count") && about["count"].is_number()) points.count = about["count"].get<double>();
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  if (line != "x,y,label") throw InputError("figures/latent.csv: expected the columns x,y,label");
  while (std::getline(lines, line)) {
    double x = 0, y = 0;
    int end = 0;
    if (std::sscanf(line.c_str(), "%lf,%lf,%n", &x, &y, &end) != 2 || end == 0)
      throw InputError("figures/latent.csv: expected rows x,y,label");
    points.clouds[line.substr(static_cast<std::size_t>(end))] += fmt::format("{:.6g},{:.6g}\n", x, y);
  }
  return points;
}

std::optional<LatentFigure> draw_latent(const fs::path& from, const fs::path& to, const std::string& name) {
  std::error_code ignored;
  if (!fs::exists(from / "latent.json", ignored)) return {};
  const LatentPoints found = latent_points_in(read_file(from / "latent.json"), read_file(from / "latent.csv"));
  const auto& clouds = found.clouds;
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
      gnuplot_text(found.x), gnuplot_text(found.y),
      labelled ? "above horizontal maxcols 5 left Left reverse noenhanced samplen 1 font ',11'" : "off", plot);
  LatentFigure figure;
  figure.drawn = draw({.name = name, .width = 480, .height = 380 + 18 * static_cast<int>(keys), .script = script}, to);
  figure.caption = fmt::format("Means of q(z | x) for {} {} data{}.", count_text(found.count), found.split,
                               labelled ? ", coloured by label" : "");
  figure.alternative = fmt::format("{} Across: {}; upwards: {}.", figure.caption, found.x, found.y);
  return figure;
}

}  // namespace hone
