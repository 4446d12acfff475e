#pragma once

#include <string>
#include <vector>

#include "hone/engine/config.hpp"
#include "hone/engine/engine.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/latent/decoder.hpp"
#include "hone/latent/encoder.hpp"
#include "hone/latent/minibatch.hpp"
#include "hone/latent/parameters.hpp"

namespace hone {

// The networks of a latent-variable model and of its q, on one flat vector of parameters.
template <class Real>
class Model {
 public:
  // Throws DataError where the data do not fit the model (a Bernoulli wants bits).
  Model(const TrainConfig& config, const DataSet& train);

  void check(const DataSet& data) const;  // DataError where other data do not fit

  void initialize(const RandomSource& random);
  void pack(int part, int parts);  // after the parameters have changed; threads share it out

  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  const Decoder<Real>& decoder() const { return decoder_; }
  const AmortizedGaussian<Real>& encoder() const { return encoder_; }
  Gradients gradients() const { return gradients_; }  // that trajectories use

  // Columns for so many data, and the data as columns [begin, end) of them, centred where the model wants it.
  Minibatch<Real> minibatch(int columns) const { return {density_, decoder_.pixels(), columns}; }
  void expand(const DataSet& data, std::span<const int> indices, int begin, int end, Minibatch<Real>& out) const;

  // z ~ N(0, I), x ~ p(x | z): data of the model as it is, packed last.
  SimulatedData simulate(const RandomSource& random, int count) const;
  // E[x | z] for every column of z, (pixels, n), on the data's own scale
  void mean(MatrixView<const double> z, MatrixView<double> out) const;

  // gaussian-mf: log p(x) of the data in a minibatch's column, exactly
  double exact_log_likelihood(const Minibatch<Real>& data, int column) const;

 private:
  Density density_;
  Gradients gradients_;
  Parameters<Real> parameters_;
  Decoder<Real> decoder_;
  AmortizedGaussian<Real> encoder_;
  ImageShape shape_;
  std::vector<double> centre_;  // the training data's mean; empty: none
};

}  // namespace hone
