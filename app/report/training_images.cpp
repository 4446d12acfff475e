#include "app/report/training_images.hpp"

#include <fmt/format.h>

#include <cmath>

#include "app/report/text.hpp"
#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

// Which values are black and white, unless they are 0 and 1.
std::string range_words(const Json& pictures) {
  const double low = number_in(pictures, "low"), high = number_in(pictures, "high");
  if (std::isnan(low + high) || (low == 0 && high == 1)) return "";
  return fmt::format(" Black is {}, white is {}.", number_text(low), number_text(high));
}

}  // namespace

void write_images(const RunRecord& run, Page& page) {
  const std::filesystem::path figures = run.folder / "figures";
  std::error_code ignored;
  if (!std::filesystem::exists(figures / "images.json", ignored))
    return page.paragraph(
        run.name() +
        (run.summary.empty()
             ? " has no pictures: it has not ended."
             : " has no pictures: its data are not images (shape = [rows, columns] makes images of rows of numbers)."));
  const Json json = parse_json(read_file(figures / "images.json"));
  const double count = number_in(json, "count"), steps = number_in(json, "steps"),
               iteration = number_in(json, "iteration");
  if (std::isnan(count + steps + iteration) || !json.contains("split") || !json["split"].is_string())
    throw InputError("figures/images.json: expected an object with split, count, steps and iteration");
  const std::string split = json["split"];
  page.image_rows(
      {{"data", figures / "images_data.png", fmt::format("The first {:.0f} images of the {} data.", count, split)},
       {"reconstructed from draws of q", figures / "images_q.png",
        fmt::format("The model's mean images at one draw of q for each of the {:.0f} images above.", count)},
       {fmt::format("reconstructed from the same draws, refined by {:.0f} steps", steps),
        figures / "images_refined.png",
        fmt::format("The model's mean images at the same draws, refined by {:.0f} MCMC steps.", steps)},
       {"samples from the model", figures / "images_samples.png",
        fmt::format("{:.0f} mean images of the model at draws of the prior.", count)}},
      fmt::format("{}: {} data and mean images of the model after iteration {}.{}", run.name(), split,
                  count_text(iteration), range_words(json)));
}

}  // namespace hone
