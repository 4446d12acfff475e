#pragma once

#include "hone/engine/config.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Images that a trained model makes from data and from the prior: one datum per column, (pixels, n) each.
struct Reconstructions {
  Matrix<double> data;     // the data themselves
  Matrix<double> from_q;   // E[x | z0] at one draw z0 ~ q(z | x) of each datum
  Matrix<double> refined;  // E[x | z_t] at the same draws, refined by the configuration's kernel and steps
  Matrix<double> samples;  // E[x | z] at z ~ N(0, I), as many as there are data
  double acceptance = 0;   // of the refinement
};

// Takes the first `count` of `data` and a model that either engine trained on `train`. Computed on the cpu from the
// arguments alone. The step size is the state's; under kl, which adapts none, one is found that has the configuration's
// target acceptance. Throws InputError if the state belongs to another model.
Reconstructions reconstruct(const TrainConfig& config, const TrainState& state, const DataSet& train,
                            const DataSet& data, int count);

}  // namespace hone
