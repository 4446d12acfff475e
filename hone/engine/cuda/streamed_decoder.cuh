#pragma once

#include "hone/engine/cuda/refinement.cuh"
#include "hone/engine/cuda/tiles.cuh"

namespace hone::cuda {

// For many runs at a time, where what counts is how much a multiprocessor does, not how soon: a block alone carries 16
// chains. Hidden layers are shared out over its warps by 16 units, and so are the pixels, of which a warp goes forward
// and back in one go. With hidden layers the last one's tiles stream from the device's cache, two ahead, each to the
// warp that needs it; all others, and those of decoders without hidden layers, stay in shared memory.
template <bool hidden_>
struct StreamedShape {
  static constexpr bool hidden = hidden_;
  static constexpr int warps = streamed_warps, chains = 16, in_steps = hidden ? 1 : 4, most_dims = 16 * in_steps;
  static constexpr int last_steps = hidden ? hidden_steps : in_steps;
  static constexpr int most_pairs = 52;  // of pixels that stay: 832 of them
  static constexpr int first_tiles = hidden ? hidden_steps * in_steps : 0,
                       second_tiles = hidden ? hidden_steps * hidden_steps : 0, below = first_tiles + second_tiles;
  static constexpr int stages = 2, stage_tiles = last_steps;  // of a warp's own ring

  static bool holds(const Net& net) {
    if (net.depth != (hidden ? 3 : 1) || net.inputs() > most_dims) return false;
    if (!hidden) return net.outputs() <= 16 * most_pairs;
    return net.layer[0].outputs <= 16 * hidden_steps && net.layer[1].outputs <= 16 * hidden_steps;
  }
  static int tiles(const Net& net) { return below + ceil_div(net.outputs(), 16) * last_steps; }
};

template <class Shape>
struct StreamedPlaces {
  int tiles = 0, ring = 0, input = 0, first = 0, second = 0, parts = 0, values = 0, bytes = 0;

  __host__ __device__ constexpr StreamedPlaces() {
    Places places;
    const auto take = [&](int count) { return places.take<uint4>(tile_lines * count); };
    constexpr int part_tiles = Shape::warps * 2 * Shape::in_steps;  // sums of two columns of a tile take as much as one
    tiles = take(Shape::hidden ? Shape::below : Shape::most_pairs * Shape::last_steps);
    ring = take(Shape::hidden ? Shape::warps * Shape::stages * Shape::stage_tiles : 0);
    input = take(Shape::in_steps);
    // the first layer's values have been read when parts of ∇_z are written
    first = parts = take(Shape::hidden && hidden_steps > part_tiles ? hidden_steps : part_tiles);
    second = take(Shape::hidden ? hidden_steps : 0);
    values = places.take<double>(Shape::warps * Shape::chains);
    bytes = places.bytes();
  }
  __host__ __device__ constexpr ChainPlaces chains() const { return {bytes, Shape::chains, Shape::most_dims}; }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

template <class Shape>
class StreamedDecoder {
 public:
  static constexpr int NC = Shape::chains, block_warps = Shape::warps, most_dims = Shape::most_dims;

  __device__ StreamedDecoder(const Space& space, const TrajectorySpec& spec, char* shared, int run, int first)
      : space_(space),
        spec_(spec),
        shared_(shared),
        run_(run),
        first_(first),
        pairs_(ceil_div(spec.decoder.layer[last].outputs, 16)) {}

  static __device__ constexpr int rank() { return 0; }
  static __device__ constexpr int point_stride() { return most_dims; }
  static __device__ constexpr ChainPlaces places() { return at().chains(); }

  __device__ void load() {
    const uint4* from = space_.of(space_.packed, run_);
    const int resident = tile_lines * (Shape::hidden ? Shape::below : pairs_ * Shape::last_steps);
    for (int i = static_cast<int>(threadIdx.x); i < resident; i += 32 * block_warps) tiles(0)[i] = from[i];
    for (int i = static_cast<int>(threadIdx.x); i < tile_lines * in_steps; i += 32 * block_warps)
      reinterpret_cast<uint4*>(shared_ + at().input)[i] = make_uint4(0, 0, 0, 0);
    if constexpr (Shape::hidden) begin_stream();
  }
  __device__ __forceinline__ void set_input(int chain, int d, float z) {
    const int lane = 4 * (chain % 8) + d % 8 / 2, word = chain / 8 + 2 * (d / 8 % 2);
    reinterpret_cast<unsigned short*>(shared_ + at().input)[((d / 16 * 32 + lane) * 4 + word) * 2 + d % 2] =
        static_cast<unsigned short>(packed(z, z));
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value);
  __device__ __forceinline__ double gradient(int chain, int d) const {
    const int place = (d / 8 * 32 + 4 * (chain % 8) + d % 8 / 2) * 4 + 2 * (chain / 8) + d % 2;
    const float* part = reinterpret_cast<const float*>(shared_ + at().parts) + place;
    float even = 0, odd = 0;
#pragma unroll
    for (int warp = 0; warp < block_warps; warp += 2) {
      even += part[warp * part_floats];
      odd += part[(warp + 1) * part_floats];
    }
    return even + odd;
  }
  __device__ __forceinline__ double log_likelihood(int chain) const {
    const double* part = reinterpret_cast<const double*>(shared_ + at().values) + chain;
    double sum = 0;
#pragma unroll
    for (int warp = 0; warp < block_warps; ++warp) sum += part[warp * NC];
    return sum;
  }

 private:
  static constexpr int in_steps = Shape::in_steps, last_steps = Shape::last_steps, last = Shape::hidden ? 2 : 0;
  static constexpr int own = (hidden_steps + block_warps - 1) / block_warps;  // 16 units each of a hidden layer
  static constexpr int part_floats = 2 * in_steps * 32 * 4;

  static __host__ __device__ constexpr StreamedPlaces<Shape> at() { return {}; }
  __device__ int t() const { return lane_ % 4; }
  __device__ int chain(int half) const { return lane_ / 4 + 8 * half; }
  __device__ bool real(int half) const { return first_ + chain(half) < space_.batch; }
  __device__ uint4* tiles(int tile) const { return reinterpret_cast<uint4*>(shared_ + at().tiles) + tile_lines * tile; }
  __device__ uint4* stage(int i) const {
    const int tile = (warp_ * Shape::stages + i % Shape::stages) * Shape::stage_tiles;
    return reinterpret_cast<uint4*>(shared_ + at().ring) + tile_lines * tile;
  }
  __device__ __forceinline__ Rows rows(int place, int step) const {
    const uint4 words = reinterpret_cast<const uint4*>(shared_ + place)[32 * step + lane_];
    return {{words.x, words.y, words.z, words.w}};
  }
  __device__ __forceinline__ void set_rows(int place, int step, const Rows& r) const {
    reinterpret_cast<uint4*>(shared_ + place)[32 * step + lane_] = make_uint4(r.a[0], r.a[1], r.a[2], r.a[3]);
  }
  template <int steps>
  __device__ __forceinline__ void read(Rows (&to)[steps], int place) const {
#pragma unroll
    for (int s = 0; s < steps; ++s) to[s] = rows(place, s);
  }
  template <class F>  // f(i, pair) for the warp's own 16 units of a hidden layer
  __device__ __forceinline__ void each_own(F f) const {
#pragma unroll
    for (int i = 0; i < own; ++i)
      if (const int pair = warp_ + block_warps * i; pair < hidden_steps) f(i, pair);
  }

  // The warp's pairs of pixels are warp, warp + 8 …: the first two come while others are busy with the hidden layers.
  __device__ __forceinline__ void fetch(int i) const {
    const int pair = warp_ + block_warps * i;
    if (pair < pairs_) {
      const uint4* from = space_.of(space_.packed, run_) +
                          static_cast<std::size_t>(tile_lines) * (Shape::below + pair * last_steps) + lane_;
      uint4* to = stage(i) + lane_;
#pragma unroll
      for (int s = 0; s < last_steps; ++s) copy_async(to + tile_lines * s, from + tile_lines * s);
    }
    commit_copies();
  }
  __device__ void begin_stream() const {
    for (int i = 0; i < Shape::stages; ++i) fetch(i);
  }

  __device__ __forceinline__ void add_biases(int l, int pair, float absent, Sums (&c)[2]) const {
    const Layer& layer = spec_.decoder.layer[l];
    const float* all = space_.parameters + run_ * space_.stride + layer.bias;
    const auto bias = [&](int i) { return i >= layer.outputs ? absent : layer.has_bias ? all[i] : 0.0f; };
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int unit = 16 * pair + 8 * j + 2 * t();
      const float low = bias(unit), high = bias(unit + 1);
      c[j] = c[j] + Sums{low, high, low, high};
    }
  }
  // 16 units' numbers → the tape
  __device__ void record(float* const (&arrays)[max_layers], int l, int pair, const Sums (&c)[2]) const {
    const Layer& layer = spec_.decoder.layer[l];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int unit = 16 * pair + 8 * j + 2 * t();
      if (unit >= layer.outputs) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* to = arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain(half)) * layer.ld + unit;
        if (real(half))
          *reinterpret_cast<float2*>(to) = half == 0 ? make_float2(c[j].x, c[j].y) : make_float2(c[j].z, c[j].w);
      }
    }
  }

  template <bool records>
  __device__ __forceinline__ void forward_hidden();
  template <bool records>
  __device__ __forceinline__ void pass_pixels(bool wants_value, const double* value, const Rows (&h)[last_steps],
                                              Sums (&slope)[2 * last_steps]);
  template <bool records>
  __device__ __forceinline__ void backward_hidden(const Sums (&slope)[2 * last_steps]);

  const Space& space_;
  const TrajectorySpec& spec_;
  char* shared_;
  int run_, first_, pairs_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, lane_ = static_cast<int>(threadIdx.x) % 32;
  Rows own_first_[own], own_second_[own];  // values of the warp's own units
};

template <class Shape>
template <bool records>
__device__ __forceinline__ void StreamedDecoder<Shape>::forward_hidden() {
  const auto layer = [&]<int steps>(int l, int tile, const Rows(&below)[steps], Rows(&values)[own], int place) {
    each_own([&](int i, int pair) {
      Sums c[2] = {};
      forward(c, below, tiles(tile + steps * pair));
      add_biases(l, pair, 0.0f, c);
      c[0] = rectified(c[0]);
      c[1] = rectified(c[1]);
      values[i] = as_rows(c[0], c[1]);
      set_rows(place, pair, values[i]);
      if constexpr (records) record(spec_.tape.value, l, pair, c);
    });
    __syncthreads();
  };
  Rows z[in_steps], h[hidden_steps];
  read(z, at().input);
  layer(0, 0, z, own_first_, at().first);
  read(h, at().first);
  layer(1, Shape::first_tiles, h, own_second_, at().second);
}

// The warp's own pixels: log p there and, in the sums of all units below, what their residuals are worth.
template <class Shape>
template <bool records>
__device__ __forceinline__ void StreamedDecoder<Shape>::pass_pixels(bool wants_value, const double* value,
                                                                    const Rows (&h)[last_steps],
                                                                    Sums (&slope)[2 * last_steps]) {
  RowSum sums[2];
  const float* x[2];
  bool lost[2] = {false, false};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(first_ + chain(half), space_.batch - 1);
    x[half] = space_.of(space_.x, run_) + static_cast<std::size_t>(row) * space_.ld_pixels;
    if constexpr (records) lost[half] = value[chain(half)] == -infinity;
  }
#pragma unroll 1
  for (int i = 0, pair = warp_; pair < pairs_; ++i, pair += block_warps) {
    const int pixel = 16 * pair + 2 * t();
    float2 seen[2][2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        seen[j][half] = pixel + 8 * j < space_.ld_pixels ? *reinterpret_cast<const float2*>(x[half] + pixel + 8 * j)
                                                         : make_float2(0, 0);
    Sums c[2] = {};
    add_biases(last, pair, never, c);
    const uint4* mine = Shape::hidden ? stage(i) : tiles(last_steps * pair);
    if constexpr (Shape::hidden) {
      wait_copies<Shape::stages - 1>();
      __syncwarp();
    }
    forward(c, h, mine);
#pragma unroll
    for (int j = 0; j < 2; ++j)
      c[j] = {sums[0].add(c[j].x, seen[j][0].x), sums[0].add(c[j].y, seen[j][0].y),
              sums[1].add(c[j].z, seen[j][1].x), sums[1].add(c[j].w, seen[j][1].y)};
    if constexpr (records) {
#pragma unroll
      for (int j = 0; j < 2; ++j)
        c[j] = {lost[0] ? 0.0f : c[j].x, lost[0] ? 0.0f : c[j].y, lost[1] ? 0.0f : c[j].z, lost[1] ? 0.0f : c[j].w};
      record(spec_.tape.delta, last, pair, c);
    }
    if (Shape::hidden || !records) back<last_steps>(slope, as_rows(c[0], c[1]), mine);
    if (i % 16 == 15) {  // products of 64 numbers of at most 2
      sums[0].take_logarithm();
      sums[1].take_logarithm();
    }
    if constexpr (Shape::hidden) {
      __syncwarp();
      fetch(i + Shape::stages);
    }
  }
  if (!wants_value) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const double sum = sums[half].total();
    if (t() == 0) reinterpret_cast<double*>(shared_ + at().values)[warp_ * NC + chain(half)] = sum;
  }
}

// All warps' sums meet where their tiles lay; then every warp has its own units' deltas, and the next tiles may come.
template <class Shape>
template <bool records>
__device__ __forceinline__ void StreamedDecoder<Shape>::backward_hidden(const Sums (&slope)[2 * last_steps]) {
  static_assert(Shape::stages * Shape::stage_tiles == 2 * last_steps);
  auto* meeting = reinterpret_cast<Sums*>(shared_ + at().ring) + lane_;
  constexpr int of_warp = 2 * last_steps * 32;
#pragma unroll
  for (int j = 0; j < 2 * last_steps; ++j) meeting[warp_ * of_warp + 32 * j] = slope[j];
  __syncthreads();
  const auto finish = [&](int l, int pair, const Rows& value, Sums(&c)[2]) {
    if constexpr (records) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const unsigned low = value.a[2 * j], high = value.a[2 * j + 1];
        c[j] = {low & 0xFFFF ? c[j].x : 0.0f, low >> 16 ? c[j].y : 0.0f, high & 0xFFFF ? c[j].z : 0.0f,
                high >> 16 ? c[j].w : 0.0f};
      }
      record(spec_.tape.delta, l, pair, c);
    }
    return where_positive(value, as_rows(c[0], c[1]));
  };
  each_own([&](int i, int pair) {
    Sums c[2] = {};
#pragma unroll
    for (int warp = 0; warp < block_warps; ++warp)
#pragma unroll
      for (int j = 0; j < 2; ++j) c[j] = c[j] + meeting[warp * of_warp + 32 * (2 * pair + j)];
    set_rows(at().second, pair, finish(1, pair, own_second_[i], c));
  });
  __syncthreads();
  if constexpr (!records) begin_stream();
  Rows delta[hidden_steps];
  read(delta, at().second);
  Sums z[2 * in_steps] = {};
  each_own([&](int i, int pair) {
    Sums c[2] = {};
#pragma unroll
    for (int p = 0; p < hidden_steps; ++p) {
      const Matrices w = load_transposed(tiles(Shape::first_tiles + hidden_steps * p + pair));
      mma_halves(c[0], delta[p].a, w.m[0], w.m[2]);
      mma_halves(c[1], delta[p].a, w.m[1], w.m[3]);
    }
    const Rows first = finish(0, pair, own_first_[i], c);
    if constexpr (!records) back<in_steps>(z, first, tiles(in_steps * pair));
  });
  if constexpr (!records) {
    auto* parts = reinterpret_cast<Sums*>(shared_ + at().parts) + lane_;
#pragma unroll
    for (int j = 0; j < 2 * in_steps; ++j) parts[(warp_ * 2 * in_steps + j) * 32] = z[j];
  }
}

template <class Shape>
template <bool records>
__device__ void StreamedDecoder<Shape>::evaluate(bool wants_value, const double* value) {
  if constexpr (Shape::hidden) forward_hidden<records>();
  Rows h[last_steps];
  read(h, Shape::hidden ? at().second : at().input);
  Sums slope[2 * last_steps] = {};
  pass_pixels<records>(wants_value, value, h, slope);
  if constexpr (Shape::hidden) {
    backward_hidden<records>(slope);
  } else if constexpr (!records) {
    auto* parts = reinterpret_cast<Sums*>(shared_ + at().parts) + lane_;
#pragma unroll
    for (int j = 0; j < 2 * in_steps; ++j) parts[(warp_ * 2 * in_steps + j) * 32] = slope[j];
  }
  __syncthreads();
}

#endif

}  // namespace hone::cuda
