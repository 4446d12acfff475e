#pragma once

#include <string>
#include <vector>

#include "hone/latent/amortized_family.hpp"
#include "hone/latent/network.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

struct EncoderConfig {
  int pixels = 1;
  std::vector<int> hidden;
  AmortizedShape shape;    // what q takes
  std::string scale_name;  // of its second network in checkpoints
  Activation activation = Activation::relu;
  std::vector<Windows> down = {};  // convolutions that both networks begin with
};

template <class Real>
struct EncoderTape {
  Tape<Real> location, scale;
};

// The parameters of q(z | x) from two separate networks, location and scale. Their tensors are "mean.…" and
// "SCALE_NAME.…" of `parameters`. Several threads may call const functions, each on its own columns.
template <class Real>
class Encoder {
 public:
  Encoder(const EncoderConfig& config, Parameters<Real>& parameters);

  void initialize(const RandomSource& random, InitialWeights initial, double length);  // length: mean of |x|²
  void pack(int part = 0, int parts = 1);  // call after the parameters change; thread i of n packs part i

  // Shapes a tape for data (pixels, n), which must outlive its use.
  void prepare(EncoderTape<Real>& tape, BatchView<const Real> data) const;

  // Locations and scales of the data in columns [begin, end); scales that are positive by modified_softplus
  void forward(EncoderTape<Real>& tape, int begin, int end, MatrixView<double> location,
               MatrixView<double> scale) const;

  // Backpropagates d objective / d location and d objective / d scale for the columns [begin, end). Then each thread
  // computes its part of the sum over columns: the gradient of the networks' parameters.
  void backward(EncoderTape<Real>& tape, int begin, int end, const AmortizedGradient& slope) const;
  void sum_gradient(const EncoderTape<Real>& tape, const SumPart& part, std::span<Real> gradient) const;
  void add_pieces(int part, int parts, std::vector<Elements>& pieces) const;  // as Network's

 private:
  EncoderConfig config_;
  Network<Real> location_, scale_;
};

}  // namespace hone
