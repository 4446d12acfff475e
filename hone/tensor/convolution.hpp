#pragma once

#include <span>

#include "hone/tensor/layer.hpp"

namespace hone {

// Windows of 4 × 4 pixels that lie two pixels apart on a large image with a border of zeros, one per pixel of a small
// image with half the rows and columns. An image is stored row by row, the channels of a pixel side by side.
struct Windows {
  int rows = 1, cols = 1;  // of the small image
  int fine = 1;            // channels of the large image
  int coarse = 1;          // channels of the small one

  int count() const { return rows * cols; }
  int large() const { return 4 * count() * fine; }  // numbers in an image
  int small() const { return count() * coarse; }
  int depth() const { return 16 * fine; }  // numbers in a window
};

enum class Way {
  down,  // a convolution, from the large image to the small one
  up,    // a transposed convolution, from the small image to the large one
};

// A convolutional layer, with the functions of PackedLayer. It gathers the windows of one image at a time and
// multiplies them by PackedLayer. Weights are (depth, coarse) down and (coarse, depth) up; a bias has one number per
// channel. Real is float or double. Several threads may call const functions at once, each on its own columns.
template <class Real>
class ConvolutionLayer {
 public:
  ConvolutionLayer(const Windows& windows, Way way, Directions directions);

  void pack(std::span<const Real> weights, std::span<const Real> bias, int part = 0, int parts = 1);
  void forward(BatchView<const Real> x, Activation activation, BatchView<Real> y) const;
  void backward(BatchView<const Real> dy, Activation below, BatchView<const Real> x, BatchView<Real> dx) const;
  void backward_input(BatchView<const Real> dy, BatchView<Real> dx) const;

  // As weight_gradient and bias_gradient, for the rows of the weights and the channels of which this is part i of n.
  void sum_gradient(BatchView<const Real> x, BatchView<const Real> dy, int part, int parts, std::span<Real> weights,
                    std::span<Real> bias, SumsFrom from) const;

 private:
  Windows windows_;
  Way way_;
  PackedLayer<Real> layer_;
  std::vector<Real> bias_;  // up
};

// Part i of n of some items begins here.
inline int share(int items, int part, int parts) {
  return static_cast<int>(static_cast<std::int64_t>(items) * part / parts);
}

}  // namespace hone
