#pragma once

#include <vector>

#include "hone/latent/network.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

struct EncoderConfig {
  int pixels = 1;
  std::vector<int> hidden;
  int latent = 1;
  Activation activation = Activation::relu;
  std::vector<Windows> down = {};  // convolutions that both networks begin with
};

template <class Real>
struct EncoderTape {
  Tape<Real> mean, sd;
};

// q(z | x) = N(μ(x), diag σ(x)²) from two separate networks, σ = modified_softplus(a). Its parameters are the tensors
// "mean.…" and "sd.…" of `parameters`. Several threads may call const functions, each on its own columns.
template <class Real>
class AmortizedGaussian {
 public:
  AmortizedGaussian(const EncoderConfig& config, Parameters<Real>& parameters);

  int latent() const { return config_.latent; }
  const EncoderConfig& config() const { return config_; }

  void initialize(const RandomSource& random, InitialWeights initial, double length);  // length: mean of |x|²
  void pack(int part = 0, int parts = 1);  // call after the parameters change; thread i of n packs part i

  // Shapes a tape for data (pixels, n), which must outlive its use.
  void prepare(EncoderTape<Real>& tape, BatchView<const Real> data) const;

  // μ and σ (D, n) of the data in columns [begin, end)
  void forward(EncoderTape<Real>& tape, int begin, int end, MatrixView<double> mean, MatrixView<double> sd) const;

  // Backpropagates d objective / dμ and d objective / dσ (D, n) for the columns [begin, end). Then each thread computes
  // its part of the sum over columns: the gradient of q's parameters.
  void backward(EncoderTape<Real>& tape, int begin, int end, MatrixView<const double> mean,
                MatrixView<const double> sd) const;
  void sum_gradient(const EncoderTape<Real>& tape, const SumPart& part, std::span<Real> gradient) const;
  void add_pieces(int part, int parts, std::vector<Elements>& pieces) const;  // as Network's

 private:
  EncoderConfig config_;
  Network<Real> mean_, sd_;
};

}  // namespace hone
