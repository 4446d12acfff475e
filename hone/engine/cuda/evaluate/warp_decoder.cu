#include "hone/engine/cuda/evaluate/warp_decoder.cuh"

#include <algorithm>

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/device/launch.cuh"
#include "hone/engine/cuda/product/row_tiles.cuh"

namespace hone::cuda {
namespace {

constexpr int most_warps = 8;        // of a block
constexpr int stages = 4;            // chunks of tiles that are on their way or in use
constexpr unsigned log_every = 256;  // pixels: a lane multiplies a quarter of so many numbers of at most 2

// z has up to 16 in_steps dimensions.
template <int in_steps_, int hidden_layers_>
struct WarpShape {
  static constexpr int in_steps = in_steps_, hidden_layers = hidden_layers_;
  static constexpr int last_steps = hidden_layers > 0 ? hidden_steps : in_steps;
  static constexpr int chunk_pairs = 16 / last_steps, chunk_tiles = chunk_pairs * last_steps;  // what comes at a time
  static_assert(hidden_layers < 2 || chunk_pairs == 1);
  static constexpr int first_tiles = hidden_layers > 0 ? hidden_steps* in_steps : 0;  // these stay in shared memory
  static constexpr int second_chunks = hidden_layers > 1 ? hidden_steps : 0;

  static constexpr int bytes = static_cast<int>(sizeof(uint4)) * tile_lines * (first_tiles + stages * chunk_tiles);
};

struct PackedDecoder {
  const uint4* tiles;   // of all layers
  const float* biases;  // 16 hidden_steps of each hidden layer, then the pixels'
  int last_chunks;
};

// Which values of a hidden layer are not 0, until its deltas come.
class Positive {
 public:
  __device__ __forceinline__ void set(int step, const Rows& value) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * step + i;
      bits_[at / 16] |= ((value.a[i] & 0xFFFF ? 1u : 0u) | (value.a[i] >> 16 ? 2u : 0u)) << 2 * (at % 16);
    }
  }
  __device__ __forceinline__ Rows of(int step, Rows delta) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * step + i;
      const unsigned both = bits_[at / 16] >> 2 * (at % 16);
      delta.a[i] &= (both & 1 ? 0x0000FFFFu : 0u) | (both & 2 ? 0xFFFF0000u : 0u);
    }
    return delta;
  }

 private:
  unsigned bits_[(4 * hidden_steps + 15) / 16] = {};
};

// Chunks of tiles through a ring in shared memory: all of them once, then again from the first. Every warp of the block
// takes each.
template <int chunk_tiles>
class TileStream {
 public:
  static constexpr int size = chunk_tiles * tile_lines;

  __device__ TileStream(uint4* ring, const uint4* from, int chunks, int total)
      : ring_(ring), from_(from), chunks_(chunks), total_(total) {
    for (int i = 0; i < stages - 1; ++i) {
      load(i);
      commit_copies();
    }
  }
  __device__ __forceinline__ const uint4* next() {
    wait_copies<stages - 2>();
    __syncthreads();
    load(taken_ + stages - 1);
    commit_copies();
    return ring_ + taken_++ % stages * size;
  }

 private:
  __device__ __forceinline__ void load(int i) const {
    if (i >= total_) return;
    const uint4* from = from_ + static_cast<std::size_t>(i < chunks_ ? i : i - chunks_) * size;
    uint4* to = ring_ + i % stages * size;
    for (int at = static_cast<int>(threadIdx.x); at < size; at += static_cast<int>(blockDim.x))
      copy_async(to + at, from + at, true);
  }

  uint4* ring_;
  const uint4* from_;
  int chunks_, total_, taken_ = 0;
};

// A warp's pass through all layers with its 16 rows: z → values of the hidden layers → log p of the pixels and, where
// wanted, back to ∇_z.
template <class Shape, bool gradient>
class WarpPass {
  static constexpr int in_steps = Shape::in_steps, hidden_layers = Shape::hidden_layers, last_steps = Shape::last_steps;

 public:
  __device__ __forceinline__ WarpPass(const PackedDecoder& net, const DecoderRows& rows, uint4* shared)
      : net_(net),
        rows_(rows),
        first_(shared),
        stream_(shared + tile_lines * Shape::first_tiles, net.tiles + tile_lines * Shape::first_tiles,
                Shape::second_chunks + net.last_chunks,
                Shape::second_chunks + net.last_chunks + (gradient ? Shape::second_chunks : 0)),
        biases_(net.biases + 2 * t()) {}

  // The first layer's tiles, by all threads of the block: a barrier must follow.
  static __device__ __forceinline__ void load_first(const PackedDecoder& net, uint4* first) {
    for (int i = static_cast<int>(threadIdx.x); i < tile_lines * Shape::first_tiles; i += static_cast<int>(blockDim.x))
      first[i] = net.tiles[i];
  }

  __device__ __forceinline__ void load_input() {
#pragma unroll
    for (int s = 0; s < in_steps; ++s)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int d = 16 * s + 2 * t() + 8 * (i / 2);
        const float* at = rows_.input + static_cast<std::size_t>(i % 2 == 0 ? low() : high()) * rows_.ld + d;
        z_[s].a[i] = d < rows_.ld ? packed(at[0], at[1]) : 0u;
      }
  }

  __device__ __forceinline__ void forward_hidden() {
    if constexpr (hidden_layers == 0) {
#pragma unroll
      for (int s = 0; s < last_steps; ++s) h_[s] = z_[s];
    } else if constexpr (hidden_layers == 1) {
      first_layer(h_);
    } else {
      Rows below[hidden_steps];
      first_layer(below);
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) {
        const uint4* tiles = stream_.next();
        Sums c[2];
        begin(c);
        forward(c, below, tiles);
        h_[p] = as_rows(rectified(c[0]), rectified(c[1]));
        if constexpr (gradient) first_positive_.set(p, below[p]);
      }
    }
  }

  // log p of all pixels; `below`: what their residuals add to the sums of the layer below.
  __device__ __forceinline__ void compare(Sums (&below)[gradient ? 2 * last_steps : 1]) {
    RowSum sums[2];
    const float* x[2] = {rows_.x + static_cast<std::size_t>(low() / rows_.rows_per_datum) * rows_.ldx,
                         rows_.x + static_cast<std::size_t>(high() / rows_.rows_per_datum) * rows_.ldx};
    int pixel = 2 * t();
    for (int chunk = 0; chunk < net_.last_chunks; ++chunk) {
      const uint4* tiles = stream_.next();
#pragma unroll 1
      for (int pair = 0; pair < Shape::chunk_pairs; ++pair, pixel += 16, tiles += tile_lines * last_steps) {
        Sums c[2];
        compare_pair(c, sums, x, pixel, tiles);
        if constexpr (gradient) back(below, as_rows(c[0], c[1]), tiles);
      }
    }
    if (!rows_.partial) return;
    const float value[2] = {sums[0].total(), sums[1].total()};
    if (t() == 0 && row() < rows_.rows) rows_.partial[row()] = value[0];
    if (t() == 0 && row() + 8 < rows_.rows) rows_.partial[row() + 8] = value[1];
  }

  __device__ __forceinline__ void backward(const Sums (&last)[2 * last_steps]) {
    if constexpr (hidden_layers == 0) return write_gradient(last);
    if constexpr (hidden_layers > 0) {
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) h_[p] = where_positive(h_[p], as_rows(last[2 * p], last[2 * p + 1]));
      if constexpr (hidden_layers == 2) {
        Sums below[2 * hidden_steps] = {};
#pragma unroll
        for (int p = 0; p < hidden_steps; ++p) back(below, h_[p], stream_.next());
#pragma unroll
        for (int p = 0; p < hidden_steps; ++p) h_[p] = first_positive_.of(p, as_rows(below[2 * p], below[2 * p + 1]));
      }
      Sums c[2 * in_steps] = {};
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) back(c, h_[p], first_ + tile_lines * in_steps * p);
      write_gradient(c);
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int t() { return lane() % 4; }
  static __device__ __forceinline__ int row() {  // of the lane, and the one 8 further
    return (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32) * 16 + lane() / 4;
  }
  __device__ __forceinline__ int low() const { return min(row(), rows_.rows - 1); }
  __device__ __forceinline__ int high() const { return min(row() + 8, rows_.rows - 1); }

  __device__ __forceinline__ void begin(Sums (&c)[2]) {  // with the biases of 16 units
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float2 b = *reinterpret_cast<const float2*>(biases_ + 8 * j);
      c[j] = {b.x, b.y, b.x, b.y};
    }
    biases_ += 16;
  }
  __device__ __forceinline__ void first_layer(Rows (&to)[hidden_steps]) {
#pragma unroll
    for (int p = 0; p < hidden_steps; ++p) {
      Sums c[2];
      begin(c);
      forward(c, z_, first_ + tile_lines * in_steps * p);
      to[p] = as_rows(rectified(c[0]), rectified(c[1]));
    }
  }
  // 16 pixels: c are their residuals.
  __device__ __forceinline__ void compare_pair(Sums (&c)[2], RowSum (&sums)[2], const float* const (&x)[2], int pixel,
                                               const uint4* tiles) {
    float2 seen[2][2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        seen[j][half] =
            pixel + 8 * j < rows_.ldx ? *reinterpret_cast<const float2*>(x[half] + pixel + 8 * j) : make_float2(0, 0);
    begin(c);
    forward(c, h_, tiles);
#pragma unroll
    for (int j = 0; j < 2; ++j)
      c[j] = {sums[0].add(c[j].x, seen[j][0].x), sums[0].add(c[j].y, seen[j][0].y), sums[1].add(c[j].z, seen[j][1].x),
              sums[1].add(c[j].w, seen[j][1].y)};
    if (static_cast<unsigned>(pixel) % log_every < log_every - 16) return;
    sums[0].take_logarithm();
    sums[1].take_logarithm();
  }
  __device__ __forceinline__ void write_gradient(const Sums (&c)[2 * in_steps]) const {
#pragma unroll
    for (int j = 0; j < 2 * in_steps; ++j) {
      const int d = 8 * j + 2 * t();
      if (d >= rows_.ld) continue;
      float* to = rows_.gradient + static_cast<std::size_t>(row()) * rows_.ld + d;
      if (row() < rows_.rows) *reinterpret_cast<float2*>(to) = make_float2(c[j].x, c[j].y);
      if (row() + 8 < rows_.rows)
        *reinterpret_cast<float2*>(to + 8 * static_cast<std::size_t>(rows_.ld)) = make_float2(c[j].z, c[j].w);
    }
  }

  const PackedDecoder& net_;
  const DecoderRows& rows_;
  const uint4* first_;
  TileStream<Shape::chunk_tiles> stream_;
  const float* biases_;
  Rows z_[in_steps], h_[last_steps];
  Positive first_positive_;
};

template <class Shape, bool gradient>
__global__ void __launch_bounds__(32 * most_warps, gradient ? 1 : 2) decode(PackedDecoder net, DecoderRows rows) {
  extern __shared__ __align__(16) uint4 shared_tiles[];
  using Pass = WarpPass<Shape, gradient>;
  Pass::load_first(net, shared_tiles);
  Pass pass(net, rows, shared_tiles);
  pass.load_input();
  if constexpr (Shape::hidden_layers > 0) __syncthreads();  // the first layer's tiles are there
  pass.forward_hidden();
  Sums below[gradient ? 2 * Shape::last_steps : 1] = {};
  pass.compare(below);
  if constexpr (gradient) pass.backward(below);
}

// One thread per row of eight weights, and a bias.
__global__ void pack_layer(const float* parameters, Layer layer, int steps, int pairs, bool pixels, uint4* tiles,
                           float* biases) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 16 * pairs) biases[i] = bias_of(parameters, layer, i, pixels ? never : 0.0f);
  if (i >= steps * pairs * tile_lines) return;
  tiles[i] = packed_line(parameters, layer, steps, i);
}

// with(WarpShape) for the shape of a decoder
template <class F>
void with_shape(int in_steps, int hidden_layers, F with) {
  if (hidden_layers == 0) return with(WarpShape<4, 0>());
  if (hidden_layers == 1) return in_steps == 1 ? with(WarpShape<1, 1>()) : with(WarpShape<4, 1>());
  return in_steps == 1 ? with(WarpShape<1, 2>()) : with(WarpShape<4, 2>());
}

template <class Shape, bool gradient>
void launch_decoder(const PackedDecoder& net, const DecoderRows& rows, cudaStream_t stream) {
  constexpr auto kernel = decode<Shape, gradient>;
  allow_shared_memory<kernel, Shape::bytes>();
  static const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
  const int groups = ceil_div(rows.rows, 16), warps = std::clamp(ceil_div(groups, processors), 1, most_warps);
  launch(kernel, {ceil_div(groups, warps), 32 * warps, Shape::bytes}, stream, "starting a decoder", net, rows);
}

}  // namespace

bool WarpDecoder::holds(const Net& net, Density density) {
  if (!suits_halves(net, density, Math::tf32) || net.depth > 3 || net.inputs() > 64) return false;
  for (int l = 0; l + 1 < net.depth; ++l)
    if (net.layer[l].outputs > 16 * hidden_steps) return false;
  return true;
}

WarpDecoder::WarpDecoder(const Net& net, const float* parameters, cudaStream_t stream)
    : hidden_layers_(net.depth - 1), in_steps_(net.depth > 1 && net.inputs() <= 16 ? 1 : 4), stream_(stream) {
  with_shape(in_steps_, hidden_layers_, [&]<class Shape>(Shape) {
    last_pairs_ = round_up(ceil_div(net.outputs(), 16), Shape::chunk_pairs);
    std::size_t tiles = Shape::first_tiles + Shape::second_chunks * hidden_steps + last_pairs_ * Shape::last_steps;
    tiles_ = Memory<uint4>(tiles * tile_lines);
    biases_ = Memory<float>(16 * static_cast<std::size_t>(hidden_layers_ * hidden_steps + last_pairs_));
    uint4* tile = tiles_.data();
    float* bias = biases_.data();
    for (int l = 0; l < net.depth; ++l) {
      const bool pixels = l + 1 == net.depth;
      const int steps = l == 0 ? in_steps_ : hidden_steps, pairs = pixels ? last_pairs_ : hidden_steps;
      launch(pack_layer, threads_for(steps * pairs * tile_lines), stream, "packing weights", parameters, net.layer[l],
             steps, pairs, pixels, tile, bias);
      tile += steps * pairs * tile_lines;
      bias += 16 * pairs;
    }
  });
}

void WarpDecoder::run(const DecoderRows& rows) const {
  with_shape(in_steps_, hidden_layers_, [&]<class Shape>(Shape) {
    const PackedDecoder net{tiles_.data(), biases_.data(), last_pairs_ / Shape::chunk_pairs};
    rows.gradient ? launch_decoder<Shape, true>(net, rows, stream_) : launch_decoder<Shape, false>(net, rows, stream_);
  });
}

}  // namespace hone::cuda
