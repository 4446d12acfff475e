#include "app/run/train_pictures.hpp"

#include <algorithm>
#include <cmath>

#include "app/data/picture.hpp"
#include "app/run/json.hpp"
#include "hone/engine/reconstruct.hpp"

namespace hone {
namespace {

constexpr int images = 10;

void write_row(const std::filesystem::path& file, const Matrix<double>& columns, ImageShape shape, LevelRange range) {
  const auto values = columns.view().flat();
  const DataSet data(std::vector<double>(values.begin(), values.end()), shape);
  write_png(picture_of(data, columns.cols(), columns.cols(), range), file);
}

std::pair<std::string, const DataSet*> shown_split(const DataSplits& data) {
  if (data.test.size() > 0) return {"test", &data.test};
  if (data.validation.size() > 0) return {"validation", &data.validation};
  return {"train", &data.train};
}

}  // namespace

void write_pictures(const RunFolder& folder, const TrainRunConfig& config, const DataSplits& data,
                    const TrainState& state) {
  const auto [name, split] = shown_split(data);
  const ImageShape shape = split->shape();
  if (!shape.drawable()) return;
  const int count = std::min(images, split->size());
  const Reconstructions made = reconstruct(config.train, state, data.train, *split, count);
  const LevelRange range = range_of(made.data.view().flat());
  const std::filesystem::path figures = folder.figures();
  write_row(figures / "images_data.png", made.data, shape, range);
  write_row(figures / "images_q.png", made.from_q, shape, range);
  write_row(figures / "images_refined.png", made.refined, shape, range);
  write_row(figures / "images_samples.png", made.samples, shape, range);
  const Json json = {{"split", name},
                     {"count", count},
                     {"rows", shape.rows},
                     {"cols", shape.cols},
                     {"channels", shape.channels},
                     {"steps", config.train.refine.steps},
                     {"acceptance", made.acceptance},
                     {"iteration", state.iteration},
                     {"low", range.low},
                     {"high", range.high}};
  write_file(figures / "images.json", json.dump(2) + "\n");
}

}  // namespace hone
