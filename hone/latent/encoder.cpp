#include "hone/latent/encoder.hpp"

#include "hone/base/scalar.hpp"

namespace hone {
namespace {

NetworkConfig network_of(const EncoderConfig& config) {
  return {.inputs = config.pixels,
          .hidden = config.hidden,
          .outputs = config.latent,
          .activation = config.activation,
          .intercept = Intercept::learned,
          .down = config.down};
}

}  // namespace

template <class Real>
AmortizedGaussian<Real>::AmortizedGaussian(const EncoderConfig& config, Parameters<Real>& parameters)
    : config_(config),
      mean_(network_of(config), "mean", Directions::forward, parameters),
      sd_(network_of(config), "sd", Directions::forward, parameters) {}

template <class Real>
void AmortizedGaussian<Real>::initialize(const RandomSource& random, InitialWeights initial, double length) {
  mean_.initialize(random, initial, length);
  sd_.initialize(random, initial, length);
}

template <class Real>
void AmortizedGaussian<Real>::pack(int part, int parts) {
  mean_.pack(part, parts);
  sd_.pack(part, parts);
}

template <class Real>
void AmortizedGaussian<Real>::prepare(EncoderTape<Real>& tape, BatchView<const Real> data) const {
  tape.mean.prepare(mean_.config(), data.cols());
  tape.sd.prepare(sd_.config(), data.cols());
  tape.mean.input = tape.sd.input = data;
}

template <class Real>
void AmortizedGaussian<Real>::forward(EncoderTape<Real>& tape, int begin, int end, MatrixView<double> mean,
                                      MatrixView<double> sd) const {
  mean_.layers().forward(tape.mean, begin, end);
  sd_.layers().forward(tape.sd, begin, end);
  for (int c = begin; c < end; ++c)
    for (int d = 0; d < config_.latent; ++d) {
      mean(d, c) = static_cast<double>(tape.mean.value.back()(d, c));
      sd(d, c) = modified_softplus(static_cast<double>(tape.sd.value.back()(d, c)));
    }
}

template <class Real>
void AmortizedGaussian<Real>::backward(EncoderTape<Real>& tape, int begin, int end, MatrixView<const double> mean,
                                       MatrixView<const double> sd) const {
  for (int c = begin; c < end; ++c)
    for (int d = 0; d < config_.latent; ++d) {
      const auto a = static_cast<double>(tape.sd.value.back()(d, c));
      tape.mean.delta.back()(d, c) = static_cast<Real>(mean(d, c));
      tape.sd.delta.back()(d, c) = static_cast<Real>(sd(d, c) * sigmoid(a - softplus_shift));
    }
  mean_.layers().backward(tape.mean, begin, end);
  sd_.layers().backward(tape.sd, begin, end);
}

template <class Real>
void AmortizedGaussian<Real>::sum_gradient(const EncoderTape<Real>& tape, const SumPart& part,
                                           std::span<Real> gradient) const {
  mean_.sum_gradient(tape.mean, part, gradient);
  sd_.sum_gradient(tape.sd, part, gradient);
}

template <class Real>
void AmortizedGaussian<Real>::add_pieces(int part, int parts, std::vector<Elements>& pieces) const {
  mean_.add_pieces(part, parts, pieces);
  sd_.add_pieces(part, parts, pieces);
}

template class AmortizedGaussian<float>;
template class AmortizedGaussian<double>;

}  // namespace hone
