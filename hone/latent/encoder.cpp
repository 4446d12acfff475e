#include "hone/latent/encoder.hpp"

#include "hone/base/scalar.hpp"

namespace hone {
namespace {

NetworkConfig network_of(const EncoderConfig& config, int outputs) {
  return {.inputs = config.pixels,
          .hidden = config.hidden,
          .outputs = outputs,
          .activation = config.activation,
          .intercept = Intercept::learned,
          .down = config.down};
}

}  // namespace

template <class Real>
Encoder<Real>::Encoder(const EncoderConfig& config, Parameters<Real>& parameters)
    : config_(config),
      location_(network_of(config, config.shape.location), "mean", Directions::forward, parameters),
      scale_(network_of(config, config.shape.scale), config.scale_name, Directions::forward, parameters) {}

template <class Real>
void Encoder<Real>::initialize(const RandomSource& random, InitialWeights initial, double length) {
  location_.initialize(random, initial, length);
  scale_.initialize(random, initial, length);
}

template <class Real>
void Encoder<Real>::pack(int part, int parts) {
  location_.pack(part, parts);
  scale_.pack(part, parts);
}

template <class Real>
void Encoder<Real>::prepare(EncoderTape<Real>& tape, BatchView<const Real> data) const {
  tape.location.prepare(location_.config(), data.cols());
  tape.scale.prepare(scale_.config(), data.cols());
  tape.location.input = tape.scale.input = data;
}

template <class Real>
void Encoder<Real>::forward(EncoderTape<Real>& tape, int begin, int end, MatrixView<double> location,
                            MatrixView<double> scale) const {
  location_.layers().forward(tape.location, begin, end);
  scale_.layers().forward(tape.scale, begin, end);
  for (int c = begin; c < end; ++c) {
    for (int i = 0; i < config_.shape.location; ++i)
      location(i, c) = static_cast<double>(tape.location.value.back()(i, c));
    for (int i = 0; i < config_.shape.scale; ++i) {
      const auto a = static_cast<double>(tape.scale.value.back()(i, c));
      scale(i, c) = i < config_.shape.positive ? modified_softplus(a) : a;
    }
  }
}

template <class Real>
void Encoder<Real>::backward(EncoderTape<Real>& tape, int begin, int end, const AmortizedGradient& slope) const {
  for (int c = begin; c < end; ++c) {
    for (int i = 0; i < config_.shape.location; ++i)
      tape.location.delta.back()(i, c) = static_cast<Real>(slope.location(i, c));
    for (int i = 0; i < config_.shape.scale; ++i) {
      const auto a = static_cast<double>(tape.scale.value.back()(i, c));
      const double inner = i < config_.shape.positive ? sigmoid(a - softplus_shift) : 1;
      tape.scale.delta.back()(i, c) = static_cast<Real>(slope.scale(i, c) * inner);
    }
  }
  location_.layers().backward(tape.location, begin, end);
  scale_.layers().backward(tape.scale, begin, end);
}

template <class Real>
void Encoder<Real>::sum_gradient(const EncoderTape<Real>& tape, const SumPart& part, std::span<Real> gradient) const {
  location_.sum_gradient(tape.location, part, gradient);
  scale_.sum_gradient(tape.scale, part, gradient);
}

template <class Real>
void Encoder<Real>::add_pieces(int part, int parts, std::vector<Elements>& pieces) const {
  location_.add_pieces(part, parts, pieces);
  scale_.add_pieces(part, parts, pieces);
}

template class Encoder<float>;
template class Encoder<double>;

}  // namespace hone
