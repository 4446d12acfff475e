// Convolutions against their definition.

#include "hone/tensor/convolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hone {
namespace {

constexpr int images = 3;

double number(int i) { return std::sin(0.7 * i + 0.3); }

template <class Real>
struct Layer {
  Layer(const Windows& windows, Way which) : w(windows), way(which), layer(windows, which, Directions::both) {
    weights.resize(static_cast<std::size_t>(w.depth() * w.coarse));
    bias.resize(static_cast<std::size_t>(way == Way::down ? w.coarse : w.fine));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<Real>(number(static_cast<int>(i)));
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<Real>(number(static_cast<int>(5 * i)));
    layer.pack(weights, bias);
  }
  int inputs() const { return way == Way::down ? w.large() : w.small(); }
  int outputs() const { return way == Way::down ? w.small() : w.large(); }
  Batch<Real> batch(int rows, int salt) const {
    Batch<Real> made(rows, images);
    for (int c = 0; c < images; ++c)
      for (int i = 0; i < rows; ++i) made(i, c) = static_cast<Real>(number(salt + 3 * i + 11 * c));
    return made;
  }
  // The weight that joins channel f of the large image and channel k of the small one, at window position (ky, kx).
  Real weight(int ky, int kx, int f, int k) const {
    const int at = (ky * 4 + kx) * w.fine + f;
    return weights[static_cast<std::size_t>(way == Way::down ? at * w.coarse + k : k * w.depth() + at)];
  }
  // use(index in the large image, index in the small image, weight) for every product of the definition
  template <class Use>
  void each(Use use) const {
    for (int r = 0; r < w.rows; ++r)
      for (int c = 0; c < w.cols; ++c)
        for (int ky = 0; ky < 4; ++ky)
          for (int kx = 0; kx < 4; ++kx) {
            const int y = 2 * r - 1 + ky, x = 2 * c - 1 + kx;
            if (y < 0 || x < 0 || y >= 2 * w.rows || x >= 2 * w.cols) continue;
            for (int f = 0; f < w.fine; ++f)
              for (int k = 0; k < w.coarse; ++k)
                use((y * 2 * w.cols + x) * w.fine + f, (r * w.cols + c) * w.coarse + k, weight(ky, kx, f, k));
          }
  }

  Windows w;
  Way way;
  ConvolutionLayer<Real> layer;
  std::vector<Real> weights, bias;
};

template <class Real>
void check(const Windows& windows, Way way, double tolerance) {
  const Layer<Real> l(windows, way);
  const bool down = way == Way::down;
  const Batch<Real> x = l.batch(l.inputs(), 1), dy = l.batch(l.outputs(), 2);
  Batch<Real> y(l.outputs(), images), dx(l.inputs(), images), slope(l.inputs(), images);
  l.layer.forward(x, Activation::tanh, y);
  l.layer.backward_input(dy, dx);
  l.layer.backward(dy, Activation::tanh, x, slope);
  for (int c = 0; c < images; ++c) {
    std::vector<double> a(static_cast<std::size_t>(l.outputs())), back(static_cast<std::size_t>(l.inputs()));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = l.bias[i % l.bias.size()];
    l.each([&](int large, int small, double weight) {
      const int in = down ? large : small, out = down ? small : large;
      a[out] += weight * x(in, c);
      back[in] += weight * dy(out, c);
    });
    for (int i = 0; i < l.outputs(); ++i) EXPECT_NEAR(y(i, c), std::tanh(a[i]), tolerance);
    for (int i = 0; i < l.inputs(); ++i) {
      EXPECT_NEAR(dx(i, c), back[i], tolerance * 10);
      EXPECT_NEAR(slope(i, c), back[i] * (1 - static_cast<double>(x(i, c)) * x(i, c)), tolerance * 10);
    }
  }
}

const Windows shapes[] = {{.rows = 3, .cols = 5, .fine = 3, .coarse = 16},
                          {.rows = 1, .cols = 1, .fine = 1, .coarse = 1},
                          {.rows = 2, .cols = 1, .fine = 7, .coarse = 5}};

TEST(Convolution, BothWaysAgainstTheDefinition) {
  for (const Windows& windows : shapes)
    for (const Way way : {Way::down, Way::up}) {
      check<double>(windows, way, 1e-12);
      check<float>(windows, way, 2e-5);
    }
}

TEST(Convolution, GradientAgainstTheDefinitionInAnyShares) {
  for (const Windows& windows : shapes)
    for (const Way way : {Way::down, Way::up}) {
      const Layer<float> l(windows, way);
      const Batch<float> x = l.batch(l.inputs(), 1), dy = l.batch(l.outputs(), 2);
      std::vector<float> weights(l.weights.size(), 9), bias(l.bias.size(), 9), shared = weights, shared_bias = bias;
      l.layer.sum_gradient(x, dy, 0, 1, weights, bias, SumsFrom::zero);
      for (int part = 0; part < 3; ++part) {  // rows in three parts, columns in two
        l.layer.sum_gradient(x.view().columns(0, 1), dy.view().columns(0, 1), part, 3, shared, shared_bias,
                             SumsFrom::zero);
        l.layer.sum_gradient(x.view().columns(1, images), dy.view().columns(1, images), part, 3, shared, shared_bias,
                             SumsFrom::before);
      }
      EXPECT_EQ(shared, weights);
      EXPECT_EQ(shared_bias, bias);
      // In the direction of the weights themselves: Σ (∂/∂w) w = Σ dy (y − bias).
      double along = 0, expected = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) along += static_cast<double>(weights[i]) * l.weights[i];
      for (std::size_t i = 0; i < bias.size(); ++i) {
        double sum = 0;
        for (int c = 0; c < images; ++c)
          for (int o = static_cast<int>(i); o < l.outputs(); o += static_cast<int>(bias.size())) sum += dy(o, c);
        EXPECT_NEAR(bias[i], sum, 1e-4);
      }
      for (int c = 0; c < images; ++c)
        l.each([&](int large, int small, double weight) {
          const bool down = way == Way::down;
          expected += weight * x(down ? large : small, c) * dy(down ? small : large, c);
        });
      EXPECT_NEAR(along, expected, 1e-4 * (10 + std::abs(expected)));
    }
}

// A rank may have no image of a small minibatch.
TEST(Convolution, TheGradientOfNoImagesIsZero) {
  for (const Windows& windows : shapes)
    for (const Way way : {Way::down, Way::up}) {
      const Layer<float> l(windows, way);
      const Batch<float> x = l.batch(l.inputs(), 1), dy = l.batch(l.outputs(), 2);
      std::vector<float> weights(l.weights.size(), 9), bias(l.bias.size(), 9), before = weights;
      l.layer.sum_gradient(x.view().columns(0, 0), dy.view().columns(0, 0), 0, 1, before, bias, SumsFrom::before);
      EXPECT_EQ(before, weights);
      for (int part = 0; part < 3; ++part)
        l.layer.sum_gradient(x.view().columns(0, 0), dy.view().columns(0, 0), part, 3, weights, bias, SumsFrom::zero);
      EXPECT_EQ(weights, std::vector<float>(weights.size(), 0));
      EXPECT_EQ(bias, std::vector<float>(bias.size(), 0));
    }
}

}  // namespace
}  // namespace hone
