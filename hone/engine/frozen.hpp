#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/base/random.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// A trained model and its q, apart from training: computed on the cpu from the arguments alone, whichever engine
// trained it. Const functions may be called from several threads.
class FrozenModel {
 public:
  virtual ~FrozenModel() = default;
  virtual int latent() const = 0;
  virtual int pixels() const = 0;
  virtual int outputs() const = 0;  // of the decoder: natural parameters of x

  // Throws DataError if the data do not suit the model; it counts them from `first`.
  virtual void check(const DataSet& data, int first = 0) const = 0;

  // q(z | x): means and standard deviations (D, n) of the data at `indices`, and a draw of each (D, n), whose column c
  // has the random numbers of datum c.
  virtual void encode(const DataSet& data, std::span<const int> indices, MatrixView<double> mean,
                      MatrixView<double> sd) const = 0;
  virtual void draw_q(const DataSet& data, std::span<const int> indices, const RandomSource& random,
                      MatrixView<double> z) const = 0;

  // Moves z (D, n), points of the posteriors of the data at `indices`, by `steps` steps of the configuration's kernel;
  // returns the mean acceptance. The step size is the state's; under kl, which adapts none, one is found that has the
  // configuration's target acceptance. Column c has the random numbers of datum c. `beat` is called before every
  // evaluation and may throw Stopped.
  virtual double refine(const DataSet& data, std::span<const int> indices, int steps, const RandomSource& random,
                        MatrixView<double> z, const std::function<void()>& beat) const = 0;

  virtual void outputs(MatrixView<const double> z, MatrixView<double> out) const = 0;  // natural parameters of x
  virtual void mean(MatrixView<const double> z, MatrixView<double> out) const = 0;     // E[x | z]
  // x ~ p(x | z), with the random numbers of the data first, first + 1, …
  virtual void draw(const RandomSource& random, int first, MatrixView<const double> z, MatrixView<double> x) const = 0;
};

// Throws InputError if the state belongs to another model. Of `train` only shape, kind and mean are used.
std::unique_ptr<FrozenModel> freeze(const TrainConfig& config, const TrainState& state, const DataSet& train);

}  // namespace hone
