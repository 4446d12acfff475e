#pragma once

#include "app/data/load.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/train_config.hpp"
#include "hone/engine/train_state.hpp"

namespace hone {

// Where q puts data in latent space, so that a report needs neither model nor data: the means of q for up to 2,000 data
// of the test split (of another one if it alone has labels), in two dimensions.
//   figures/latent.csv    x,y,label
//   figures/latent.json   {"split", "count", "x", "y", "iteration"}: the axes in words; written last
// With more than two latent dimensions, the axes are the first two principal components of these means.
// With one, they are the means and the standard deviations of q. Writes nothing if z has more than 300. Throws Error.
void write_latent_plot(const RunFolder& folder, const TrainRunConfig& config, const DataSplits& data,
                       const TrainState& state);

// The first two principal components of points (D, n), each (n), and the shares of the variance that they explain.
struct PrincipalPlane {
  Matrix<double> points;  // (2, n)
  double share[2];
};
PrincipalPlane principal_plane(const Matrix<double>& points);

}  // namespace hone
