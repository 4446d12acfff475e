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
  std::vector<int> hidden;  // none: matrix factorization
  int pixels = 1;
  Activation activation = Activation::relu;
  Density density = Density::bernoulli;  // a Gaussian's intercepts are held at 0
};

// How ∇_z log p(x, z) is computed: in the numbers of the decoder, or by bf16 products (floats only).
enum class Gradients { exact, bf16 };

// A latent-variable model: x | z ~ density(network(z)), z ~ N(0, I). Parameters are tensors "decoder.…" of
// `parameters`, which must outlive it. Products are of Real; points, values and gradients in z are doubles, and so are
// the sums of values. Const functions may be called from several threads.
template <class Real>
class Decoder {
 public:
  // Throws InputError where `gradients` asks for bf16 and there is none.
  Decoder(const DecoderConfig& config, Parameters<Real>& parameters, Gradients gradients = Gradients::exact);

  int latent() const { return config_.latent; }
  int pixels() const { return config_.pixels; }
  const DecoderConfig& config() const { return config_; }

  void initialize(const RandomSource& random) { network_.initialize(random); }
  void pack(int part = 0, int parts = 1);  // whenever the parameters have changed; threads share it out

  // log p(x, z) for every column of z (D, n), column c with the datum datum[c] of the minibatch. Values are always
  // exact. With Gradients::bf16 the decoder must have been made for it.
  struct Points {
    MatrixView<const double> z;
    const Minibatch<Real>& data;
    std::span<const std::uint32_t> datum;
  };
  void log_joint(const Points& points, Want want, std::span<double> value, MatrixView<double> gradient,
                 Gradients gradients = Gradients::exact) const;

  // The natural parameters of x for every column of z (D, n): (pixels, n).
  void outputs(MatrixView<const double> z, MatrixView<double> out) const;
  // E[x | z] for every column of z (D, n): out is (pixels, n).
  void mean(MatrixView<const double> z, MatrixView<double> out) const;

  // ∇ log p(x | z) in the parameters, in two steps: every thread records columns of its own, then takes its part of the
  // sum over all columns. The tape must have been prepared for points.z.cols() columns.
  void prepare(Tape<Real>& tape, int columns) const { tape.prepare(network_.config(), columns); }
  void record(const Points& points, int begin, int end, Tape<Real>& tape) const;
  void sum_gradient(const Tape<Real>& tape, int part, int parts, std::span<Real> gradient) const {
    network_.sum_gradient(tape, part, parts, gradient);
  }

 private:
  template <class Element>
  void compute(const LayerStack<Element>& layers, const Points& points, Want want, std::span<double> value,
               MatrixView<double> gradient) const;

  DecoderConfig config_;
  Network<Real> network_;
  std::unique_ptr<LayerStack<Bf16>> bf16_;
};

}  // namespace hone
