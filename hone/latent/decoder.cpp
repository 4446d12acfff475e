#include "hone/latent/decoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "hone/base/clones.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

NetworkConfig network_of(const DecoderConfig& config) {
  const bool centred = config.density == Density::gaussian;
  return {.inputs = config.latent,
          .hidden = config.hidden,
          .outputs = outputs_of(config.density, {config.pixels, config.categories}),
          .activation = config.activation,
          .intercept = centred ? Intercept::none : Intercept::learned,
          .up = config.up};
}

// ∇ log p(x | z) + ∇ log N(z; 0, I)
HONE_CLONES void subtract(const float* gradient, std::span<const double> z, std::span<double> out) {
  for (std::size_t d = 0; d < z.size(); ++d) out[d] = static_cast<double>(gradient[d]) - z[d];
}
HONE_CLONES void subtract(const double* gradient, std::span<const double> z, std::span<double> out) {
  for (std::size_t d = 0; d < z.size(); ++d) out[d] = gradient[d] - z[d];
}

}  // namespace

template <class Real>
Decoder<Real>::Decoder(const DecoderConfig& config, Parameters<Real>& parameters, Gradients gradients)
    : config_(config), network_(network_of(config), "decoder", Directions::both, parameters) {
  if (gradients == Gradients::exact) return;
  if (!facts_of(config.density).fused || !config.up.empty())
    throw InputError(
        "bf16 trajectories go with fully connected layers and the likelihoods bernoulli, gaussian and poisson");
  if (!std::is_same_v<Real, float>) throw InputError("bf16 trajectories go with float32 products, not with double");
  bf16_ = std::make_unique<LayerStack<Bf16>>(network_.config(), Directions::both);
}

template <class Real>
void Decoder<Real>::pack(int part, int parts) {
  network_.pack(part, parts);
  if constexpr (std::is_same_v<Real, float>)
    if (bf16_) network_.pack_into(*bf16_, part, parts);
}

// Outputs, and what `want` says of their likelihood; columns [begin, end).
template <class Real>
void Decoder<Real>::compare(Tape<Real>& tape, const Points& points, int begin, int end, Want want,
                            std::span<double> value) const {
  const LayerStack<Real>& layers = network_.layers();
  const Density density = config_.density;
  if (facts_of(density).fused && config_.up.empty()) {
    layers.forward_residual(tape, begin, end, density, {points.data.view(), points.datum, points.data.observed()}, want,
                            value);
    return;
  }
  layers.forward(tape, begin, end);
  const int items = items_of(density, shape());
  with_likelihood(density, [&](auto likelihood) {
    for (int c = begin; c < end; ++c) {
      const Real *a = tape.value.back().view().column(c), *x = points.data.view().column(points.datum[c]);
      // An item counts if all of its values were observed.
      const int values = config_.pixels / items;
      const auto seen = [&](int i) {
        for (int p = i * values; p < (i + 1) * values; ++p)
          if (!points.data.observed(p, static_cast<int>(points.datum[c]))) return false;
        return true;
      };
      if (wants_value(want))
        for (int i = 0; i < items; ++i)
          if (seen(i)) value[c - begin] += likelihood.log_p(shape(), i, a, x);
      if (!wants_gradient(want)) continue;
      Real* const residual = tape.delta.back().view().column(c);
      for (int i = 0; i < items; ++i)
        likelihood.residual(shape(), i, a, x, [&, counts = seen(i)](int k, double r) {
          residual[k] = counts ? static_cast<Real>(r) : Real(0);
        });
      std::fill(residual + outputs(), residual + tape.delta.back().view().stride(), Real(0));
    }
  });
}

template <class Real>
template <class Element>
void Decoder<Real>::compute(const LayerStack<Element>& layers, const Points& points, Want want, std::span<double> value,
                            MatrixView<double> gradient) const {
  thread_local Tape<Element> tape;
  const int count = points.z.cols();
  tape.prepare(network_.config(), count);
  fill_columns(points.z, tape.own_input.view());
  if (wants_value(want))
    for (int c = 0; c < count; ++c) value[c] = points.data.constant(points.datum[c]);
  if constexpr (std::is_same_v<Element, Real>)
    compare(tape, points, 0, count, want, value);
  else if constexpr (std::is_same_v<Sum<Element>, Real>)
    layers.forward_residual(tape, 0, count, config_.density, {points.data.view(), points.datum, points.data.observed()},
                            want, value);
  if (wants_value(want))
    for (int c = 0; c < count; ++c)  // + log N(z; 0, I)
      for (const double z : points.z.column(c)) value[c] += log_standard_normal(z);
  if (!wants_gradient(want)) return;
  layers.backward(tape, 0, count);
  layers.backward_input(tape, 0, count);
  for (int c = 0; c < count; ++c) subtract(tape.input_delta.view().column(c), points.z.column(c), gradient.column(c));
}

template <class Real>
void Decoder<Real>::log_joint(const Points& points, Want want, std::span<double> value, MatrixView<double> gradient,
                              Gradients gradients) const {
  if (gradients == Gradients::exact || !wants_gradient(want)) {
    compute(network_.layers(), points, want, value, gradient);
    return;
  }
  if (!bf16_) throw std::logic_error("this decoder was not made for bf16 gradients");
  if (wants_value(want)) compute(network_.layers(), points, Want::value, value, {});
  compute(*bf16_, points, Want::gradient, {}, gradient);
}

template <class Real>
void Decoder<Real>::outputs(MatrixView<const double> z, MatrixView<double> out) const {
  Tape<Real> tape;
  tape.prepare(network_.config(), z.cols());
  fill_columns(z, tape.own_input.view());
  network_.layers().forward(tape, 0, z.cols());
  for (int c = 0; c < z.cols(); ++c)
    for (int i = 0; i < outputs(); ++i) out(i, c) = static_cast<double>(tape.value.back()(i, c));
}

template <class Real>
void Decoder<Real>::mean(MatrixView<const double> z, MatrixView<double> out) const {
  Matrix<double> a(outputs(), z.cols());
  outputs(z, a);
  for (int c = 0; c < z.cols(); ++c) likelihood_mean(config_.density, shape(), a.column(c), out.column(c));
}

template <class Real>
void Decoder<Real>::record(const Points& points, int begin, int end, Tape<Real>& tape) const {
  fill_columns(points.z.columns(begin, end), tape.own_input.view().columns(begin, end));
  compare(tape, points, begin, end, Want::gradient, {});
  network_.layers().backward(tape, begin, end);
}

template class Decoder<float>;
template class Decoder<double>;

}  // namespace hone
