#pragma once

#include "hone/engine/cuda/iteration.cuh"

namespace hone::cuda {

// All threads of block `block` of those that make it, for the iteration to come.
template <Math math>
__device__ inline void first_layer(const Space& space, const DataView& data, const EncoderSpec& encoder,
                                   const FirstLayerShape& at, char* shared, int run, int block) {
  using Shape = FirstLayerShape;
  constexpr int pairs = Shape::row_tiles / 2;
  static_assert(warps == pairs * Shape::k_parts && threads == Shape::rows * Shape::units);
  const Layer& layer = encoder.net.layer[0];
  const int net = block % Shape::nets, unit0 = block / Shape::nets % at.unit_tiles * Shape::units;
  const int row0 = block / Shape::nets / at.unit_tiles * Shape::rows;
  const float* parameters = space.of(space.parameters, run) + net * encoder.net_parameters;
  auto* weight = reinterpret_cast<float*>(shared + at.weight);
  auto* bits = reinterpret_cast<std::uint64_t*>(shared + at.bits);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = thread / Shape::units, unit = thread % Shape::units;  // a thread finishes one number
  const bool there = row0 + row < space.batch;
  const std::size_t datum = there ? next_minibatch(space, run)[row0 + row] : 0;
#pragma unroll 1
  for (int i = thread; i < 2 * 64 * at.words; i += threads) {  // (k, 8 units), 0 beyond the layer
    const int k = i / 2, column = unit0 + i % 2 * 4;
    const bool inside = k < layer.inputs && column < layer.ld;
    copy_async(weight + 4 * i,
               parameters + layer.weight + (inside ? static_cast<std::size_t>(k) * layer.ld + column : 0), inside);
  }
#pragma unroll 1
  for (int w = unit; w < at.words; w += Shape::units) {  // eight threads a row
    std::uint64_t* to = bits + row * at.stride + w;
    there ? copy_async(to, data.bits + datum * data.words + w) : void(*to = 0);
  }
  float sum = layer.has_bias && unit0 + unit < layer.outputs ? parameters[layer.bias + unit0 + unit] : 0.0f;
  wait_for_copies();
  if constexpr (math == Math::tf32)  // once for all rows; what this thread copied
#pragma unroll 1
    for (int i = thread; i < 2 * 64 * at.words; i += threads) {
      auto& four = reinterpret_cast<float4*>(weight)[i];
      four = {to_tf32(four.x), to_tf32(four.y), to_tf32(four.z), to_tf32(four.w)};
    }
  __syncthreads();
  const int pair = warp % pairs, part = warp / pairs, g = lane / 4, t = lane % 4;
  const auto* words = reinterpret_cast<const unsigned*>(bits) + (32 * pair + g) * 2 * at.stride;  // lowest bits first
  float c[2][4] = {};
#pragma unroll 1
  for (int w = part; w < 2 * at.words; w += Shape::k_parts) {
    unsigned x[4];  // rows g, g + 8, g + 16, g + 24, from bit t on
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = words[16 * i * at.stride + w] >> t;
    const float* from = weight + (32 * w + t) * Shape::units + g;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      Operand<math, 2> right;
      right.set(0, from[8 * s * Shape::units]);
      right.set(1, from[(8 * s + 4) * Shape::units]);
      const auto number = [&](int i, int bit) { return x[i] & 1u << bit ? 1.0f : 0.0f; };
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Operand<math, 4> left;
        left.set(0, number(2 * i, 8 * s));
        left.set(1, number(2 * i + 1, 8 * s));
        left.set(2, number(2 * i, 8 * s + 4));
        left.set(3, number(2 * i + 1, 8 * s + 4));
        multiply_add<math>(c[i], left, right);
      }
    }
  }
  __syncthreads();
  auto* sums = reinterpret_cast<float4*>(weight);  // (part, 16 rows, lane)
#pragma unroll
  for (int i = 0; i < 2; ++i)
    sums[(part * Shape::row_tiles + 2 * pair + i) * 32 + lane] = make_float4(c[i][0], c[i][1], c[i][2], c[i][3]);
  __syncthreads();
  const int in_tile = row % 16;
  const int from = (row / 16 * 32 + 4 * (in_tile % 8) + unit / 2) * 4 + 2 * (in_tile / 8) + unit % 2;
#pragma unroll
  for (int p = 0; p < Shape::k_parts; ++p)
    sum += reinterpret_cast<const float*>(sums)[p * Shape::row_tiles * 128 + from];
  if (!there || unit0 + unit >= layer.outputs) return;
  const std::size_t to = (static_cast<std::size_t>(net) * space.batch + row0 + row) * layer.ld + unit0 + unit;
  encoder.tape.value[0][run * space.stride + to] = activate<math>(encoder.net.activation, sum);
}

}  // namespace hone::cuda
