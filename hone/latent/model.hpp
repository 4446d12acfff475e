#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hone/latent/data_set.hpp"
#include "hone/latent/decoder.hpp"
#include "hone/latent/encoder.hpp"
#include "hone/latent/minibatch.hpp"
#include "hone/latent/minibatch_family.hpp"
#include "hone/latent/model_config.hpp"
#include "hone/latent/parameters.hpp"

namespace hone {

// The mean of data, summed one datum after another: what a Gaussian likelihood subtracts from them. Missing values
// (NaN) are left out; where all are missing it is 0.
std::vector<double> mean_of(const DataSet& data);

// z ~ N(0, I) of the data first, first + 1, … that a model simulates: one per column.
void draw_prior(const RandomSource& random, int first, MatrixView<double> z);

// The convolutions of q's networks, first to last: each halves rows and columns. The decoder ends with their
// transposes, last to first. Throws KeyError if the image cannot be halved.
std::vector<Windows> convolutions(const ModelConfig& model, ImageShape image);

// The networks of a latent-variable model and of its q, with all parameters in one flat vector.
template <class Real>
class Model {
 public:
  // `gradients` is how trajectories compute ∇_z log p(x, z), `family` that of q. Throws KeyError if the configuration
  // is impossible, InputError if there are no data, DataError if the data do not suit the likelihood.
  Model(const ModelConfig& config, const DataSet& train, Gradients gradients = Gradients::exact,
        std::shared_ptr<const AmortizedFamily> family = std::make_shared<DiagonalGaussian>());

  // Throws DataError if other data do not suit the model; it counts them from `first`.
  void check(const DataSet& data, int first = 0) const;

  void initialize(const RandomSource& random);    // draws the weights and packs them on this thread
  void draw_weights(const RandomSource& random);  // the same without packing
  // Call it after the parameters change. Thread i of n packs part i, and its memory is near the one that packs first.
  void pack(int part, int parts);

  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  const Decoder<Real>& decoder() const { return decoder_; }
  const Encoder<Real>& encoder() const { return encoder_; }
  MinibatchFamily q(const Minibatch<Real>& minibatch) const;  // q(z | x) of all data of a minibatch
  Gradients gradients() const { return gradients_; }
  // The root mean square of the encoder's inputs where it exceeds 1 (InitialWeights::scaled, otherwise 1). The first
  // layer's weights start smaller by this factor, so their learning rate has to be smaller too.
  double input_scale() const;

  // An empty minibatch; `expand` writes its columns [begin, end) from data[indices[begin, end)], centred for a Gaussian
  // likelihood.
  Minibatch<Real> minibatch(int columns) const { return {density_, decoder_.pixels(), columns, missing_}; }
  void expand(const DataSet& data, std::span<const int> indices, int begin, int end, Minibatch<Real>& out) const;

  // Draws z ~ N(0, I) and x ~ p(x | z) from the packed parameters.
  SimulatedData simulate(const RandomSource& random, int count) const;
  // The second half of it: x ~ p(x | z) for each column of z (D, n), where column c is datum first + c; x is
  // (pixels, n).
  void draw(const RandomSource& random, int first, MatrixView<const double> z, MatrixView<double> x) const;
  // E[x | z] for each column of z (D, n), on the scale of the data: out is (pixels, n).
  void mean(MatrixView<const double> z, MatrixView<double> out) const;

  // gaussian-mf: the exact log p(x) of one column of a minibatch, of the observed values if some are missing
  double exact_log_likelihood(const Minibatch<Real>& data, int column) const;

 private:
  double mean_length(const DataSet& train) const;

  Density density_;
  InitialWeights initial_;
  Missing missing_;
  Gradients gradients_;
  Parameters<Real> parameters_;
  Decoder<Real> decoder_;
  std::shared_ptr<const AmortizedFamily> family_;
  Encoder<Real> encoder_;
  ImageShape shape_;
  double length_ = 1;           // mean of |x|² over some of the training data, for InitialWeights::scaled
  std::vector<double> centre_;  // the mean of the training data; empty unless the likelihood is centred
};

}  // namespace hone
