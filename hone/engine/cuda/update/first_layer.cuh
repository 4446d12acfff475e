#pragma once

#include "hone/engine/cuda/update/update_step.cuh"

namespace hone::cuda {

// A strip of the encoder's first layer for data that are bits: 16 units, and the k's of up to `FirstLayerSums::words`
// words; a warp has 32 k's. It reads only these bits of a datum, of this minibatch for the gradient and of the next one
// for the product with the new weights.
class Strip {
  static constexpr Math math = Math::tf32;  // as the refinement whose kernel reads its sums
  static constexpr int words = FirstLayerSums::words, most_rows = 64 * words, bits_stride = 5,
                       bits_rows = round_up(rows_at_once, 16);
  // from a row to the next, so that a product touches every bank once: of deltas, of sums, of weights by units
  static constexpr int stride = 16 + 8, gradient_stride = 16 + 4, unit_stride = most_rows + 4;

 public:
  static constexpr int units = 16;
  static constexpr int floats = 2 * most_rows * units + most_rows * gradient_stride + units * unit_stride +
                                rows_at_once * stride + 2 * 2 * bits_rows * bits_stride;

  __device__ Strip(const Space& space, const UpdateTask& task, const DataView& data, int run, float* shared)
      : space_(space), task_(task), data_(data), run_(run) {
    theta_ = shared;
    gradient_ = theta_ + 2 * most_rows * units;  // second moments between
    by_unit_ = gradient_ + most_rows * gradient_stride;
    dy_ = by_unit_ + units * unit_stride;
    bits_[0] = reinterpret_cast<std::uint64_t*>(dy_ + rows_at_once * stride);
    bits_[1] = bits_[0] + bits_rows * bits_stride;
  }

  __device__ WeightTile tile() const {
    return {.rows = 64 * task_.words,
            .log_quads = 2,
            .stride = units,
            .theta = theta_,
            .second = theta_ + most_rows * units,
            .gradient = gradient_,
            .gradient_stride = gradient_stride};
  }
  // Rows of two minibatches from row0 on, for the gradient and for the product (null: none), whose bits `begin_bits`
  // starts to copy; 0 beyond the batch. Data numbers are read early, before anything waits.
  class Rows {
   public:
    __device__ __forceinline__ Rows(int batch, const int* minibatch, const int* next_minibatch, int row0)
        : lists_{minibatch, next_minibatch} {
      for (int which = 0; which < 2; ++which)
        for (int i = 0; i < times; ++i) {
          const int row = first() + i * together;
          const bool there = lists_[which] && row < rows_at_once && row0 + row < batch;
          datum_[which][i] = there ? __ldcg(lists_[which] + row0 + row) : -1;
        }
    }

   private:
    friend Strip;
    static constexpr int together = update_threads / words, times = (bits_rows + together - 1) / together;
    static __device__ int first() { return this_thread() / words; }
    const int* lists_[2];
    int datum_[2][times];
  };
  __device__ __forceinline__ void begin_bits(const Rows& rows) const {
    const int word = this_thread() % words;
    for (int which = 0; which < 2; ++which)
      for (int i = 0; i < Rows::times; ++i) {
        const int row = Rows::first() + i * Rows::together, datum = rows.datum_[which][i];
        if (!rows.lists_[which] || row >= bits_rows) continue;
        std::uint64_t* to = bits_[which] + row * bits_stride + word;
        if (datum >= 0 && word < task_.words)
          copy_async(to, data_.bits + static_cast<std::size_t>(datum) * data_.words + task_.row0 / 64 + word);
        else
          *to = 0;
      }
  }
  __device__ void clear_beyond() const {  // kept weights beyond the layer's k
    const int first = min(task_.rows - task_.row0, 64 * task_.words);
#pragma unroll 1
    for (int i = units * first + this_thread(); i < units * 64 * task_.words; i += update_threads)
      by_unit_[i % units * unit_stride + place_of(i / units)] = 0;
  }
  // Σ over the batch of bits times deltas → tile().gradient; the first bits are on their way. Ends with a barrier.
  __device__ void sum_gradient(const int* minibatch) const {
    const float* dy = task_.dy + run_ * space_.stride;
    Sums c[2][2] = {};  // k 16 i + g (+ 8) of the warp's 32, units 8 j + 2 t (+ 1)
#pragma unroll 1
    for (int row0 = 0; row0 < space_.batch; row0 += rows_at_once) {
      const int rows = min(round_up(space_.batch - row0, 8), rows_at_once);
      copy_tile(dy_, stride, dy, task_.lddy, row0, space_.batch, rows, task_.col0, 2);
      wait_for_copies();
      round_tile(dy_, stride, rows, 2);
      __syncthreads();
#pragma unroll 1
      for (int k = t_; warp_ < 2 * task_.words && k < rows; k += 8) {
        const unsigned* word = half_words(0) + 2 * bits_stride * k + warp_;
        const FourBits x[2] = {{word[0], g_}, {word[2 * bits_stride * 4], g_}};
        const float* b = dy_ + k * stride + g_;
        const Operand<math, 2> right[2] = {Operand<math, 2>(b[0], b[4 * stride]),
                                           Operand<math, 2>(b[8], b[4 * stride + 8])};
        for (int i = 0; i < 2; ++i) {
          const Operand<math, 4> left(x[0][2 * i], x[0][2 * i + 1], x[1][2 * i], x[1][2 * i + 1]);
          multiply_add<math>(c[i][0], left, right[0]);
          multiply_add<math>(c[i][1], left, right[1]);
        }
      }
      if (row0 + rows_at_once >= space_.batch) break;
      __syncthreads();
      begin_bits(Rows(space_.batch, minibatch, nullptr, row0 + rows_at_once));
    }
    if (warp_ < 2 * task_.words)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
          float* to = gradient_ + (32 * warp_ + 16 * i + g_) * gradient_stride + 8 * j + 2 * t_;
          *reinterpret_cast<float2*>(to) = make_float2(0.5f * c[i][j].x, 0.5f * c[i][j].y);
          *reinterpret_cast<float2*>(to + 8 * gradient_stride) = make_float2(0.5f * c[i][j].z, 0.5f * c[i][j].w);
        }
    __syncthreads();
  }
  // Weights for the product: (unit, k), of 32 k's those together that a lane reads: 8 s + t and 8 s + t + 4 for s < 4.
  __device__ __forceinline__ void keep(int row, int col, const float4& theta) const {
    float* to = by_unit_ + col * unit_stride + place_of(row);
    to[0] = to_tf32(theta.x);
    to[unit_stride] = to_tf32(theta.y);
    to[2 * unit_stride] = to_tf32(theta.z);
    to[3 * unit_stride] = to_tf32(theta.w);
  }
  __device__ void keep_all() const {  // where weights did not move
#pragma unroll 1
    for (int i = threadIdx.x; i < 64 * task_.words * units / 4; i += update_threads)
      keep(i / 4, i % 4 * 4, reinterpret_cast<const float4*>(theta_)[i]);
  }
  // All kept weights times the minibatch → sums.
  __device__ void multiply_next(const int* minibatch) const {
    float* sums = task_.sums + run_ * space_.stride + task_.col0;
#pragma unroll 1
    for (int row0 = 0; row0 < space_.batch; row0 += rows_at_once) {
      if (row0 > 0) {
        __syncthreads();
        begin_bits(Rows(space_.batch, nullptr, minibatch, row0));
        wait_for_copies();
        __syncthreads();
      }
#pragma unroll 1
      for (int row = 16 * warp_ + g_; row - g_ < min(space_.batch - row0, rows_at_once); row += 16 * update_warps) {
        const unsigned* word = half_words(1) + 2 * bits_stride * row;
        Sums c[2] = {};  // rows, rows + 8, units 8 j + 2 t (+ 1)
#pragma unroll 1
        for (int w = 0; w < 2 * task_.words; ++w) {
          const unsigned both[2] = {word[w], word[16 * bits_stride + w]};  // of rows
          const FourBits x[2][2] = {{{both[0], t_}, {both[0], t_ + 4}}, {{both[1], t_}, {both[1], t_ + 4}}};
          float b[2][8];
          for (int i = 0; i < 4; ++i)
            reinterpret_cast<float4*>(b[i / 2])[i % 2] =
                reinterpret_cast<const float4*>(by_unit_ + (8 * (i / 2) + g_) * unit_stride + 32 * w + 8 * t_)[i % 2];
          for (int s = 0; s < 4; ++s) {
            const Operand<math, 4> left(x[0][0][s], x[1][0][s], x[0][1][s], x[1][1][s]);
            for (int j = 0; j < 2; ++j) multiply_add<math>(c[j], left, Operand<math, 2>(b[j][2 * s], b[j][2 * s + 1]));
          }
        }
        for (int j = 0; j < 2; ++j)
          for (int h = 0; h < 2; ++h) {
            const int unit = 8 * j + 2 * t_, r = row0 + row + 8 * h;
            if (r < space_.batch && row + 8 * h < rows_at_once && task_.col0 + unit < task_.ld)
              *reinterpret_cast<float2*>(sums + static_cast<std::size_t>(r) * task_.ld + unit) =
                  h == 0 ? make_float2(0.5f * c[j].x, 0.5f * c[j].y) : make_float2(0.5f * c[j].z, 0.5f * c[j].w);
          }
      }
    }
  }

 private:
  __device__ const unsigned* half_words(int which) const { return reinterpret_cast<const unsigned*>(bits_[which]); }
  static __device__ int place_of(int k) { return (k & ~31) | k % 4 * 8 | k / 8 % 4 * 2 | k / 4 % 2; }
  // Bits `bit`, bit + 8, + 16, + 24 of a word as floats, 0 or 2, by few instructions: that bit alone is 2.
  class FourBits {
   public:
    __device__ __forceinline__ FourBits(unsigned word, int bit)
        : bytes_(__funnelshift_l(word, word, 6 - bit) & 0x40404040) {}
    __device__ __forceinline__ float operator[](int i) const {
      return __uint_as_float(__byte_perm(bytes_, 0, i << 12 | 0x444));
    }

   private:
    unsigned bytes_;
  };

  const Space& space_;
  const UpdateTask& task_;
  const DataView& data_;
  int run_;
  float *theta_, *gradient_, *by_unit_, *dy_;
  std::uint64_t* bits_[2];  // (row, word)
  const int warp_ = this_warp(), g_ = this_lane() / 4, t_ = this_thread() % 4;
};

}  // namespace hone::cuda
