#pragma once

#include "app/data/load.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/train_config.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// Writes images and what the model makes of them as PNG files, one row of images per file, so that a report needs
// neither model nor data:
//   figures/images_data.png      data of the test split (if there is none: of the validation or training split)
//   figures/images_q.png         the mean image at one draw of q per datum
//   figures/images_refined.png   the same at the refined draws
//   figures/images_samples.png   mean images at draws of the prior
//   figures/images.json          {"split", "count", "rows", "cols", "channels", "steps", "acceptance", "iteration"},
//   and "low", "high": the values that are black and white; written last
// Black and white are 0 and 1; if data of the picture are outside, the least and the largest of them. Writes nothing if
// the data are not images (one row or column). Throws Error.
void write_pictures(const RunFolder& folder, const TrainRunConfig& config, const DataSplits& data,
                    const TrainState& state);

}  // namespace hone
