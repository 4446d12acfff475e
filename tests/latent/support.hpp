#pragma once

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/latent/decoder.hpp"
#include "hone/latent/latent_target.hpp"

namespace hone::test {

// A decoder of odd shape with random parameters, data and points.
inline constexpr int batch = 37, latent = 3, pixels = 101, categories = 5;

inline double datum(Density density, int pixel, int column) {
  const int word = (pixel * 7 + column * 13) % 11;
  switch (density) {
    case Density::bernoulli:
      return word < 4;
    case Density::gaussian:
    case Density::gaussian_learned:
      return 0.3 * word - 1.5;
    case Density::categorical:
      return pixel % categories == (pixel / categories * 7 + column * 13) % categories;
    case Density::poisson:
    case Density::negative_binomial:
      break;
  }
  return word;
}

// Scaled parameters are small or zero, too close to 0 for differences relative to their sizes.
template <class Real>
void roughen(std::span<Real> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += Real(0.05) * (static_cast<Real>(i % 7) - Real(3.5));
}

template <class Real>
struct Model {
  explicit Model(const DecoderConfig& config, Gradients gradients = Gradients::exact, int count = batch)
      : decoder(config, parameters, gradients),
        data(config.density, config.pixels, count),
        z(config.latent, count),
        columns(static_cast<std::size_t>(count)),
        target(decoder, gradients) {
    const PhiloxSource random(3);
    decoder.initialize(random, config.up.empty() ? InitialWeights::paper : InitialWeights::scaled);
    if (!config.up.empty()) roughen(parameters.values());
    if (config.hidden.empty())  // the start of a matrix factorization is too close to 0 to show anything
      for (Real& x : parameters.values()) x *= 50;
    else  // and that of a network saturates
      for (Real& x : parameters.values()) x *= Real(0.5);
    decoder.pack();
    random.normals({Purpose::draw}, z.view().flat());
    std::iota(columns.begin(), columns.end(), 0u);
    std::vector<double> pixel(config.pixels);
    for (int c = 0; c < count; ++c) {
      for (int i = 0; i < config.pixels; ++i) pixel[i] = datum(config.density, i, c);
      data.template set<double>(c, pixel);
    }
    target.set_data(data);
  }

  typename Decoder<Real>::Points points() const { return {z, data, columns}; }

  // Σ_n log p(x_n, z_n)
  double total() const {
    std::vector<double> value(z.cols());
    target.evaluate(z, Want::value, value, {});
    return std::accumulate(value.begin(), value.end(), 0.0);
  }

  std::vector<Real> parameter_gradient(int parts = 1) const {
    Tape<Real> tape;
    decoder.prepare(tape, z.cols());
    decoder.record(points(), 0, z.cols() / 2, tape);
    decoder.record(points(), z.cols() / 2, z.cols(), tape);
    std::vector<Real> gradient(parameters.size());
    for (int part = 0; part < parts; ++part)
      decoder.sum_gradient(tape, {.part = part, .parts = parts, .begin = 0, .end = tape.columns()}, gradient);
    return gradient;
  }

  Parameters<Real> parameters;
  Decoder<Real> decoder;
  Minibatch<Real> data;
  Matrix<double> z;
  std::vector<std::uint32_t> columns;
  LatentTarget<Real> target;
};

// Two convolutions of an image of 8 × 4 pixels with three channels; the channels of one fill a vector, and of the other
// do not.
inline constexpr int image = 8 * 4 * 3;
inline std::vector<Windows> down() {
  return {{.rows = 4, .cols = 2, .fine = 3, .coarse = 16}, {.rows = 2, .cols = 1, .fine = 16, .coarse = 5}};
}
inline std::vector<Windows> up() { return {down()[1], down()[0]}; }

inline const std::vector<DecoderConfig>& configs() {
  static const std::vector<DecoderConfig> all = [] {
    std::vector<DecoderConfig> list;
    for (const auto density : {Density::bernoulli, Density::gaussian, Density::poisson}) {
      list.push_back({latent, {}, pixels, Activation::relu, density});
      for (const auto activation : {Activation::relu, Activation::tanh, Activation::softplus})
        list.push_back({latent, {64, 13}, pixels, activation, density});
    }
    for (const std::vector<int>& hidden : {std::vector<int>(), {64, 13}}) {
      list.push_back({latent, hidden, pixels, Activation::tanh, Density::gaussian_learned});
      list.push_back({latent, hidden, 20 * categories, Activation::tanh, Density::categorical, categories});
      list.push_back({latent, hidden, pixels, Activation::tanh, Density::negative_binomial});
    }
    for (const auto activation : {Activation::relu, Activation::tanh, Activation::softplus})
      list.push_back({latent, {7}, image, activation, Density::bernoulli, 0, up()});
    for (const auto density : {Density::gaussian, Density::poisson})
      list.push_back({latent, {7}, image, Activation::tanh, density, 0, up()});
    return list;
  }();
  return all;
}

// A step for differences. Across the kinks of a ReLU it must be short, and then rounding shows in the differences.
inline double step_of(const DecoderConfig& config) {
  return config.activation == Activation::relu && !config.hidden.empty() ? 1e-6 : 1e-3;
}
inline double tolerance_of(const DecoderConfig& config) { return step_of(config) < 1e-4 ? 2e-5 : 1e-8; }
// A Gaussian's values and gradients are 100 times those of the others.
inline double scale_of(const DecoderConfig& config) { return facts_of(config.density).centred ? 100 : 1; }

}  // namespace hone::test
