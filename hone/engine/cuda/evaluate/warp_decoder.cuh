#pragma once

#include "hone/engine/cuda/device/memory.cuh"
#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// Rows that a decoder sees at once, and what is wanted of them: row m belongs to datum m / rows_per_datum.
struct DecoderRows {
  const float* input;  // z, (rows, ld)
  int ld, rows;
  const float* x;  // (data, ldx)
  int ldx, rows_per_datum;
  float* partial;   // sums of log p(x | z), (parts, rows); null: not wanted
  float* gradient;  // ∇ log p(x | z), (rows, ld); null: not wanted
};

// A Bernoulli decoder with ReLUs for thousands of rows, in halves. A warp carries 16 rows through all layers: what one
// product sums is what the next one reads, and never leaves the registers. The weights come through shared memory tile
// by tile, for all warps of a block; a tile serves forward and, transposed, back.
class WarpDecoder {
 public:
  // Up to two hidden layers of at most 208 units, and at most 64 dimensions of z.
  static bool holds(const Net& net, Density density);

  WarpDecoder(const Net& net, const float* parameters, cudaStream_t stream);
  void run(const DecoderRows& rows) const;  // `partial` has one part

 private:
  int hidden_layers_, in_steps_, last_pairs_ = 0;
  cudaStream_t stream_;
  Memory<uint4> tiles_;
  Memory<float> biases_;
};

}  // namespace hone::cuda
