#pragma once

#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// The gradient of a convolution's weights, down Σ windows(x) dyᵀ, up Σ x windows(dy)ᵀ over all windows of a batch, as a
// product whose k are the windows; a row of ones below the first operand makes the gradient of the biases. The windows
// are cut into segments, whose sums are added in their order.
struct GradientShape {
  int images;  // at a time
  int m, n;    // of the product
  int segment, segments, ld_sums;

  GradientShape(const Layer& layer, int batch);
  int ld() const { return segment * segments; }  // of both operands, whose rows are along k
  std::size_t left() const { return static_cast<std::size_t>(m) * ld(); }
  std::size_t right() const { return static_cast<std::size_t>(n) * ld(); }
  std::size_t sums() const { return static_cast<std::size_t>(segments) * m * ld_sums; }
};

// Both operands and the segments' sums; of run 0.
struct GradientScratch {
  float* numbers = nullptr;
  std::size_t size = 0;

  void cover(const Net& net, int batch);  // makes `size` large enough for the net's convolutions
};

// Of all convolutions of a network: what the tape holds → tape.gradient.
struct GradientTask {
  const Net& net;
  const Tape& tape;
  int batch, runs;
  std::size_t run;  // floats from a run to the next
  Math math;
};
void launch_gradients(const GradientTask& task, const GradientScratch& scratch, cudaStream_t stream);

}  // namespace hone::cuda
