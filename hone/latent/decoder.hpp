#pragma once

#include <memory>
#include <span>
#include <type_traits>

#include "hone/latent/minibatch.hpp"
#include "hone/latent/network.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

struct DecoderConfig {
  int latent = 1;
  std::vector<int> hidden;  // empty: matrix factorization
  int pixels = 1;
  Activation activation = Activation::relu;
  Density density = Density::bernoulli;  // a Gaussian has no intercepts
  int categories = 0;                    // of a categorical density: values per group
  std::vector<Windows> up = {};          // transposed convolutions that end the network
};

// How ∇_z log p(x, z) is computed: in the decoder's own precision, or with bf16 products (float decoders only).
enum class Gradients { exact, bf16 };

// A latent-variable model: x | z ~ density(network(z)), z ~ N(0, I). Its parameters are the tensors "decoder.…" of
// `parameters`, which must outlive it. Products are computed in Real; points, gradients in z, values and their sums are
// doubles. Const functions may be called from several threads.
template <class Real>
class Decoder {
 public:
  // Throws InputError if `gradients` is bf16 and the CPU has no bf16 products, or Real is double.
  Decoder(const DecoderConfig& config, Parameters<Real>& parameters, Gradients gradients = Gradients::exact);

  int latent() const { return config_.latent; }
  int pixels() const { return config_.pixels; }
  int outputs() const { return network_.config().outputs; }  // of the network
  LikelihoodShape shape() const { return {config_.pixels, config_.categories}; }
  const DecoderConfig& config() const { return config_; }

  void initialize(const RandomSource& random, InitialWeights initial) {
    network_.initialize(random, initial, config_.latent);
  }
  void pack(int part = 0, int parts = 1);  // call after the parameters change; thread i of n packs part i

  // log p(x, z) for each column of z (D, n), where column c goes with datum[c] of the minibatch. Values are always
  // exact. Gradients::bf16 needs a decoder that was constructed with it.
  struct Points {
    MatrixView<const double> z;
    const Minibatch<Real>& data;
    std::span<const std::uint32_t> datum;
  };
  void log_joint(const Points& points, Want want, std::span<double> value, MatrixView<double> gradient,
                 Gradients gradients = Gradients::exact) const;

  // The natural parameters of x for each column of z (D, n): out is (outputs, n).
  void outputs(MatrixView<const double> z, MatrixView<double> out) const;
  // E[x | z] for each column of z (D, n): out is (pixels, n).
  void mean(MatrixView<const double> z, MatrixView<double> out) const;

  // The gradient of log p(x | z) with respect to the parameters, in two steps: each thread records its own columns,
  // then computes its part of the sum over columns. Prepare the tape for points.z.cols() columns first.
  void prepare(Tape<Real>& tape, int columns) const { tape.prepare(network_.config(), columns); }
  void record(const Points& points, int begin, int end, Tape<Real>& tape) const;
  void sum_gradient(const Tape<Real>& tape, const SumPart& part, std::span<Real> gradient) const {
    network_.sum_gradient(tape, part, gradient);
  }
  void add_pieces(int part, int parts, std::vector<Elements>& pieces) const {
    network_.add_pieces(part, parts, pieces);
  }

 private:
  void compare(Tape<Real>& tape, const Points& points, int begin, int end, Want want, std::span<double> value) const;
  template <class Element>
  void compute(const LayerStack<Element>& layers, const Points& points, Want want, std::span<double> value,
               MatrixView<double> gradient) const;

  DecoderConfig config_;
  Network<Real> network_;
  std::unique_ptr<LayerStack<Bf16>> bf16_;
};

}  // namespace hone
