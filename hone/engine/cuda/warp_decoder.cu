#include "hone/engine/cuda/warp_decoder.cuh"

#include <algorithm>

#include "hone/engine/cuda/tiles.cuh"

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

template <class Shape, bool gradient>
__global__ void __launch_bounds__(32 * most_warps, gradient ? 1 : 2) decode(PackedDecoder net, DecoderRows rows) {
  extern __shared__ __align__(16) uint4 shared_tiles[];
  constexpr int in_steps = Shape::in_steps, hidden_layers = Shape::hidden_layers, last_steps = Shape::last_steps;
  const int lane = static_cast<int>(threadIdx.x) % 32, t = lane % 4;
  const int row = (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32) * 16 + lane / 4;  // and row + 8
  const int low = min(row, rows.rows - 1), high = min(row + 8, rows.rows - 1);

  uint4* const first = shared_tiles;
  uint4* const ring = first + tile_lines * Shape::first_tiles;
  for (int i = static_cast<int>(threadIdx.x); i < tile_lines * Shape::first_tiles; i += static_cast<int>(blockDim.x))
    first[i] = net.tiles[i];
  const int chunks = Shape::second_chunks + net.last_chunks;
  TileStream<Shape::chunk_tiles> stream(ring, net.tiles + tile_lines * Shape::first_tiles, chunks,
                                        chunks + (gradient ? Shape::second_chunks : 0));
  const float* biases = net.biases + 2 * t;
  const auto begin = [&](Sums(&c)[2]) {  // with the biases of 16 units
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float2 b = *reinterpret_cast<const float2*>(biases + 8 * j);
      c[j] = {b.x, b.y, b.x, b.y};
    }
    biases += 16;
  };

  Rows z[in_steps];
#pragma unroll
  for (int s = 0; s < in_steps; ++s)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int d = 16 * s + 2 * t + 8 * (i / 2);
      const float* at = rows.input + static_cast<std::size_t>(i % 2 == 0 ? low : high) * rows.ld + d;
      z[s].a[i] = d < rows.ld ? packed(at[0], at[1]) : 0u;
    }
  if constexpr (hidden_layers > 0) __syncthreads();  // the first layer's tiles are there

  Rows h[last_steps];
  Positive first_positive;
  if constexpr (hidden_layers == 0) {
#pragma unroll
    for (int s = 0; s < last_steps; ++s) h[s] = z[s];
  } else {
    const auto first_layer = [&](Rows(&to)[hidden_steps]) {
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) {
        Sums c[2];
        begin(c);
        forward(c, z, first + tile_lines * in_steps * p);
        to[p] = as_rows(rectified(c[0]), rectified(c[1]));
      }
    };
    if constexpr (hidden_layers == 1) {
      first_layer(h);
    } else {
      Rows below[hidden_steps];
      first_layer(below);
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) {
        const uint4* tiles = stream.next();
        Sums c[2];
        begin(c);
        forward(c, below, tiles);
        h[p] = as_rows(rectified(c[0]), rectified(c[1]));
        if constexpr (gradient) first_positive.set(p, below[p]);
      }
    }
  }

  RowSum sums[2];
  Sums slope[gradient ? 2 * last_steps : 1] = {};
  const float* x[2] = {rows.x + static_cast<std::size_t>(low / rows.rows_per_datum) * rows.ldx,
                       rows.x + static_cast<std::size_t>(high / rows.rows_per_datum) * rows.ldx};
  int pixel = 2 * t;
  for (int chunk = 0; chunk < net.last_chunks; ++chunk) {
    const uint4* tiles = stream.next();
#pragma unroll 1
    for (int pair = 0; pair < Shape::chunk_pairs; ++pair, pixel += 16, tiles += tile_lines * last_steps) {
      float2 seen[2][2];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          seen[j][half] =
              pixel + 8 * j < rows.ldx ? *reinterpret_cast<const float2*>(x[half] + pixel + 8 * j) : make_float2(0, 0);
      Sums c[2];
      begin(c);
      forward(c, h, tiles);
#pragma unroll
      for (int j = 0; j < 2; ++j)
        c[j] = {sums[0].add(c[j].x, seen[j][0].x), sums[0].add(c[j].y, seen[j][0].y), sums[1].add(c[j].z, seen[j][1].x),
                sums[1].add(c[j].w, seen[j][1].y)};
      if (static_cast<unsigned>(pixel) % log_every >= log_every - 16) {
        sums[0].take_logarithm();
        sums[1].take_logarithm();
      }
      if constexpr (gradient) back(slope, as_rows(c[0], c[1]), tiles);
    }
  }
  if (rows.partial) {
    const float value[2] = {sums[0].total(), sums[1].total()};
    if (t == 0 && row < rows.rows) rows.partial[row] = value[0];
    if (t == 0 && row + 8 < rows.rows) rows.partial[row + 8] = value[1];
  }

  if constexpr (gradient) {
    const auto answer = [&](const Sums(&c)[2 * in_steps]) {
#pragma unroll
      for (int j = 0; j < 2 * in_steps; ++j) {
        const int d = 8 * j + 2 * t;
        if (d >= rows.ld) continue;
        if (row < rows.rows)
          *reinterpret_cast<float2*>(rows.answer + static_cast<std::size_t>(row) * rows.ld + d) =
              make_float2(c[j].x, c[j].y);
        if (row + 8 < rows.rows)
          *reinterpret_cast<float2*>(rows.answer + static_cast<std::size_t>(row + 8) * rows.ld + d) =
              make_float2(c[j].z, c[j].w);
      }
    };
    if constexpr (hidden_layers == 0) {
      answer(slope);
    } else {
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) h[p] = where_positive(h[p], as_rows(slope[2 * p], slope[2 * p + 1]));
      if constexpr (hidden_layers == 2) {
        Sums below[2 * hidden_steps] = {};
#pragma unroll
        for (int p = 0; p < hidden_steps; ++p) back(below, h[p], stream.next());
#pragma unroll
        for (int p = 0; p < hidden_steps; ++p) h[p] = first_positive.of(p, as_rows(below[2 * p], below[2 * p + 1]));
      }
      Sums c[2 * in_steps] = {};
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) back(c, h[p], first + tile_lines * in_steps * p);
      answer(c);
    }
  }
}

// One thread a row of eight weights, and a bias.
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
void launch(const PackedDecoder& net, const DecoderRows& rows, cudaStream_t stream) {
  constexpr auto kernel = decode<Shape, gradient>;
  allow_shared_memory<kernel, Shape::bytes>();
  static const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
  const int groups = ceil_div(rows.rows, 16), warps = std::clamp(ceil_div(groups, processors), 1, most_warps);
  kernel<<<ceil_div(groups, warps), 32 * warps, Shape::bytes, stream>>>(net, rows);
  check(cudaGetLastError(), "starting a decoder");
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
      pack_layer<<<ceil_div(steps * pairs * tile_lines, 256), 256, 0, stream>>>(parameters, net.layer[l], steps, pairs,
                                                                                pixels, tile, bias);
      check(cudaGetLastError(), "packing weights");
      tile += steps * pairs * tile_lines;
      bias += 16 * pairs;
    }
  });
}

void WarpDecoder::run(const DecoderRows& rows) const {
  with_shape(in_steps_, hidden_layers_, [&]<class Shape>(Shape) {
    const PackedDecoder net{tiles_.data(), biases_.data(), last_pairs_ / Shape::chunk_pairs};
    rows.answer ? launch<Shape, true>(net, rows, stream_) : launch<Shape, false>(net, rows, stream_);
  });
}

}  // namespace hone::cuda
