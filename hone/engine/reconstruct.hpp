#pragma once

#include "hone/engine/engine.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// What a trained model makes of some data and of nothing: one datum a column, (pixels, n) each.
struct Reconstructions {
  Matrix<double> data;     // as they are
  Matrix<double> from_q;   // E[x | z0] at one draw z0 ~ q(z | x) of each datum
  Matrix<double> refined;  // E[x | z_t] at the same draws, refined by the configuration's kernel and steps
  Matrix<double> samples;  // E[x | z] at z ~ N(0, I), as many as there are data
  double acceptance = 0;   // of the refinement
};

// Of the first `count` of `data`, for a model trained on `train` by either engine. Computed on the cpu; a function of
// its arguments alone. The step size is the state's; under kl, where none was adapted, one is found for the acceptance
// that the configuration aims at. InputError where the state is of another model.
Reconstructions reconstruct(const TrainConfig& config, const TrainState& state, const DataSet& train,
                            const DataSet& data, int count);

}  // namespace hone
