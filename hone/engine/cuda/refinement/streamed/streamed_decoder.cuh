#pragma once

#include "hone/engine/cuda/refinement/refinement.cuh"
#include "hone/engine/cuda/refinement/streamed/row_tiles.cuh"

namespace hone::cuda {

// For many chains at a time (many runs or a large batch), where throughput counts and not latency: one block carries 16
// chains on its own. Its warps share the hidden layers in groups of 16 units, and the pixels likewise; a warp takes its
// pixels forward and back in one go. If there are hidden layers, the output layer's tiles, each followed by the biases
// of its 16 pixels, stream from the device's cache, two ahead, to the warp that needs them. All other tiles, and those
// of decoders without hidden layers, stay in shared memory. Data are kept as bits.
template <bool hidden_>
struct StreamedShape {
  static constexpr bool hidden = hidden_;
  static constexpr int warps = 8, chains = 16, in_steps = hidden ? 1 : 4, most_dims = 16 * in_steps;
  static constexpr int last_steps = hidden ? hidden_steps : in_steps;
  static constexpr int most_pairs = 52;                                // 832 pixels
  static constexpr int pair_lines = last_steps * tile_lines + 16 / 4;  // of 16 bytes: tiles, biases
  static constexpr int first_tiles = hidden ? hidden_steps * in_steps : 0,
                       second_tiles = hidden ? hidden_steps * hidden_steps : 0, below = first_tiles + second_tiles;
  static constexpr int stages = 2;  // of a warp's own ring

  static bool holds(const Net& net) {
    if (net.depth != (hidden ? 3 : 1) || net.inputs() > most_dims || net.outputs() > 16 * most_pairs) return false;
    return !hidden || (net.layer[0].outputs <= 16 * hidden_steps && net.layer[1].outputs <= 16 * hidden_steps);
  }
  static int lines(const Net& net) { return below * tile_lines + ceil_div(net.outputs(), 16) * pair_lines; }
};

template <class Shape>
struct StreamedPlaces : Places {
  static constexpr int part_tiles = Shape::warps * 2 * Shape::in_steps;  // sums of two columns take as much as a tile
  int tiles = take_tiles(Shape::below);
  int pixels = take<uint4>((Shape::hidden ? Shape::warps * Shape::stages : Shape::most_pairs) * Shape::pair_lines);
  int bits = take<unsigned short>(Shape::most_pairs * Shape::chains);
  int input = take_tiles(Shape::in_steps);
  int first = take_tiles(Shape::hidden && hidden_steps > part_tiles ? hidden_steps : part_tiles);
  int parts = first;  // the first layer's values have been read when parts of ∇_z are written
  int second = take_tiles(Shape::hidden ? hidden_steps : 0);
  int values = take<float>(Shape::warps * Shape::chains);
  int boxes = take<unsigned long long>(Shape::warps * Shape::stages);
  ChainPlaces<Shape::chains, Shape::most_dims> chains{bytes()};

  __host__ __device__ constexpr StreamedPlaces() {}
  __host__ __device__ constexpr int take_tiles(int count) { return take<uint4>(tile_lines * count); }
};

template <class Shape>
class StreamedDecoder : public ChainBlock {
 public:
  static constexpr int NC = Shape::chains, block_warps = Shape::warps, most_dims = Shape::most_dims, groups = 1;
  static constexpr bool keeps_first = false;

  __device__ StreamedDecoder(const Space& space, const RefinementSpec& spec, char* shared, int run, int first)
      : ChainBlock(space, spec, shared, run, first), pairs_(ceil_div(spec.decoder.layer[last].outputs, 16)) {}

  static __device__ constexpr int rank() { return 0; }
  static __device__ constexpr auto places() { return at().chains; }

  __device__ void load() {
    const uint4* from = space_.of(space_.packed, run_);
    const int resident = Shape::hidden ? Shape::below * tile_lines : pairs_ * Shape::pair_lines;
    uint4* to = Shape::hidden ? tiles(0) : pixels(0);
    for (int i = this_thread(); i < resident; i += 32 * block_warps) to[i] = from[i];
    load_bits();
    for (int i = this_thread(); i < tile_lines * in_steps; i += 32 * block_warps)
      shared<uint4>(at().input)[i] = make_uint4(0, 0, 0, 0);
    if constexpr (Shape::hidden) {
      if (lane_ < Shape::stages) box(lane_).set_up();
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      __syncwarp();
      begin_stream();
    }
  }
  __device__ __forceinline__ void set_input(int chain, int d, float z) {
    const int lane = 4 * (chain % 8) + d % 8 / 2, word = chain / 8 + 2 * (d / 8 % 2);
    shared<unsigned short>(at().input)[((d / 16 * 32 + lane) * 4 + word) * 2 + d % 2] =
        static_cast<unsigned short>(packed(z, z));
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value) {
    if constexpr (Shape::hidden) forward_hidden<records>();
    Rows h[last_steps];
    read(h, Shape::hidden ? at().second : at().input);
    Sums gradient_below[2 * last_steps] = {};
    pass_pixels<records>(wants_value, value, h, gradient_below);
    if constexpr (Shape::hidden)
      backward_hidden<records>(gradient_below);
    else if constexpr (!records)
      set_parts(gradient_below);
    __syncthreads();
  }
  __device__ __forceinline__ double gradient(int chain, int d) const {
    const int place = (d / 8 * 32 + 4 * (chain % 8) + d % 8 / 2) * 4 + 2 * (chain / 8) + d % 2;
    const float* part = shared<float>(at().parts) + place;
    float even = 0, odd = 0;
    for (int warp = 0; warp < block_warps; warp += 2) {
      even += part[warp * part_floats];
      odd += part[(warp + 1) * part_floats];
    }
    return even + odd;
  }
  __device__ __forceinline__ double log_likelihood_part(int chain, int part) const {
    return part < block_warps ? shared<float>(at().values)[part * NC + chain] : 0;
  }

 private:
  static constexpr int in_steps = Shape::in_steps, last_steps = Shape::last_steps, last = Shape::hidden ? 2 : 0;
  static constexpr int own = (hidden_steps + block_warps - 1) / block_warps;  // 16 units each of a hidden layer
  static constexpr int part_floats = 2 * in_steps * 32 * 4;

  static __host__ __device__ constexpr StreamedPlaces<Shape> at() { return {}; }
  __device__ int chain(int half) const { return g() + 8 * half; }
  __device__ uint4* tiles(int tile) const { return shared<uint4>(at().tiles) + tile_lines * tile; }
  __device__ uint4* pixels(int i) const { return shared<uint4>(at().pixels) + Shape::pair_lines * i; }
  __device__ uint4* stage(int i) const { return pixels(warp_ * Shape::stages + i % Shape::stages); }
  __device__ __forceinline__ Rows rows(int place, int step) const {
    const uint4 words = shared<uint4>(place)[32 * step + lane_];
    return {{words.x, words.y, words.z, words.w}};
  }
  __device__ __forceinline__ void set_rows(int place, int step, const Rows& r) const {
    shared<uint4>(place)[32 * step + lane_] = make_uint4(r.a[0], r.a[1], r.a[2], r.a[3]);
  }
  template <int steps>
  __device__ __forceinline__ void read(Rows (&to)[steps], int place) const {
    for (int s = 0; s < steps; ++s) to[s] = rows(place, s);
  }
  template <class F>  // f(i, pair) for the warp's own 16 units of a hidden layer
  __device__ __forceinline__ void each_own(F f) const {
#pragma unroll
    for (int i = 0; i < own; ++i)
      if (const int pair = warp_ + block_warps * i; pair < hidden_steps) f(i, pair);
  }

  // The warp's pairs of pixels are warp, warp + 8 …: the first two come while others are busy with the hidden layers.
  __device__ __forceinline__ const Mailbox& box(int i) const {
    return shared<Mailbox>(at().boxes)[warp_ * Shape::stages + i % Shape::stages];
  }
  __device__ __forceinline__ void fetch(int i) const {
    const int pair = warp_ + block_warps * i;
    if (lane_ != 0 || pair >= pairs_) return;
    constexpr int bytes = 16 * Shape::pair_lines;
    const uint4* from = space_.of(space_.packed, run_) + Shape::below * tile_lines + pair * Shape::pair_lines;
    box(i).expect(bytes);
    copy_bytes(stage(i), from, bytes, box(i));
  }
  __device__ __forceinline__ void wait_for(int i) {
    const int bit = i % Shape::stages;
    box(i).wait(phases_ >> bit & 1);
    phases_ ^= 1u << bit;
  }
  __device__ void begin_stream() const {
    for (int i = 0; i < Shape::stages; ++i) fetch(i);
  }

  // 16 pixels of a chain per word
  __device__ void load_bits() const {
    auto* bits = shared<unsigned short>(at().bits);
    for (int i = this_thread(); i < NC * pairs_; i += 32 * block_warps) {
      const int chain = i % NC, pixel = i / NC * 16, row = min(first_ + chain, space_.batch - 1);
      const float* x = space_.of(space_.x, run_) + static_cast<std::size_t>(row) * space_.ld_pixels + pixel;
      unsigned word = 0;
      for (int quad = 0; quad < 4; ++quad) {
        if (pixel + 4 * quad >= space_.ld_pixels) break;
        const float4 four = *reinterpret_cast<const float4*>(x + 4 * quad);
        word |= ((four.x > 0) + 2 * (four.y > 0) + 4 * (four.z > 0) + 8 * (four.w > 0)) << 4 * quad;
      }
      bits[i] = static_cast<unsigned short>(word);
    }
  }
  // Biases of the lane's units: (2 t, 2 t + 1), then 8 further
  __device__ __forceinline__ float4 hidden_biases(int l, int pair) const {
    const float* parameters = space_.of(space_.parameters, run_);
    const auto bias = [&](int i) { return bias_of(parameters, spec_.decoder.layer[l], i, 0.0f); };
    const int unit = 16 * pair + 2 * t();
    return {bias(unit), bias(unit + 1), bias(unit + 8), bias(unit + 9)};
  }
  static __device__ __forceinline__ void begin(Sums (&c)[2], const float4& bias) {
    c[0] = {bias.x, bias.y, bias.x, bias.y};
    c[1] = {bias.z, bias.w, bias.z, bias.w};
  }
  // 16 units' numbers → the tape
  __device__ void record(float* const (&arrays)[max_layers], int l, int pair, const Sums (&c)[2]) const {
    const Layer& layer = spec_.decoder.layer[l];
    for (int j = 0; j < 2; ++j) {
      const int unit = 16 * pair + 8 * j + 2 * t();
      if (unit >= layer.outputs) continue;
      for (int half = 0; half < 2; ++half) {
        float* to = recorded(arrays, l, chain(half)) + unit;
        if (real(chain(half)))
          *reinterpret_cast<float2*>(to) = half == 0 ? make_float2(c[j].x, c[j].y) : make_float2(c[j].z, c[j].w);
      }
    }
  }

  template <bool records>
  __device__ __forceinline__ void forward_hidden() {
    float4 bias[2][own];  // in time
    each_own([&](int i, int pair) {
      bias[0][i] = hidden_biases(0, pair);
      bias[1][i] = hidden_biases(1, pair);
    });
    const auto layer = [&]<int steps>(int l, int tile, const Rows(&below)[steps], int place) {
      each_own([&](int i, int pair) {
        Sums c[2];
        begin(c, bias[l][i]);
        forward(c, below, tiles(tile + steps * pair));
        c[0] = rectified(c[0]);
        c[1] = rectified(c[1]);
        set_rows(place, pair, as_rows(c[0], c[1]));
        if constexpr (records) record(spec_.tape.value, l, pair, c);
      });
      __syncthreads();
    };
    Rows z[in_steps], h[hidden_steps];
    read(z, at().input);
    layer(0, 0, z, at().first);
    read(h, at().first);
    layer(1, Shape::first_tiles, h, at().second);
  }
  // The warp's own pixels: log p, and what their residuals add to the sums of all units below.
  template <bool records>
  __device__ __forceinline__ void pass_pixels(bool wants_value, const double* value, const Rows (&h)[last_steps],
                                              Sums (&gradient_below)[2 * last_steps]) {
    RowSum sums[2];  // one logarithm for all: products of at most 64 numbers of at most 2
    static_assert(4 * ((Shape::most_pairs + block_warps - 1) / block_warps) <= 64);
    const auto* bits = shared<unsigned short>(at().bits);
    bool lost[2] = {false, false};
    if constexpr (records)
      for (int half = 0; half < 2; ++half) lost[half] = value[chain(half)] == -infinity;
#pragma unroll 1
    for (int i = 0, pair = warp_; pair < pairs_; ++i, pair += block_warps) {
      const uint4* mine = Shape::hidden ? stage(i) : pixels(pair);
      if constexpr (Shape::hidden) wait_for(i);
      const auto* bias = reinterpret_cast<const float2*>(mine + last_steps * tile_lines) + t();
      Sums c[2];
      begin(c, {bias[0].x, bias[0].y, bias[4].x, bias[4].y});
      forward(c, h, mine);
      const unsigned low = bits[pair * NC + chain(0)] >> 2 * t(), high = bits[pair * NC + chain(1)] >> 2 * t();
      const auto x = [](unsigned word, int bit) { return word >> bit & 1 ? 1.0f : 0.0f; };
      for (int j = 0; j < 2; ++j)
        c[j] = {sums[0].add(c[j].x, x(low, 8 * j)), sums[0].add(c[j].y, x(low, 8 * j + 1)),
                sums[1].add(c[j].z, x(high, 8 * j)), sums[1].add(c[j].w, x(high, 8 * j + 1))};
      if constexpr (records) {
        for (int j = 0; j < 2; ++j)
          c[j] = {lost[0] ? 0.0f : c[j].x, lost[0] ? 0.0f : c[j].y, lost[1] ? 0.0f : c[j].z, lost[1] ? 0.0f : c[j].w};
        record(spec_.tape.delta, last, pair, c);
      }
      if constexpr (Shape::hidden || !records) back(gradient_below, as_rows(c[0], c[1]), mine);
      if constexpr (Shape::hidden) {
        __syncwarp();
        fetch(i + Shape::stages);
      }
    }
    if (!wants_value) return;
    for (int half = 0; half < 2; ++half) {
      const float sum = sums[half].total();
      if (t() == 0) shared<float>(at().values)[warp_ * NC + chain(half)] = sum;
    }
  }
  // Adds up all warps' sums in the memory of their tiles. Then every warp has its own units' deltas, and the next tiles
  // may be loaded.
  template <bool records>
  __device__ __forceinline__ void backward_hidden(const Sums (&gradient_below)[2 * last_steps]) {
    constexpr int of_warp = Shape::stages * Shape::pair_lines;
    static_assert(of_warp >= 2 * last_steps * 32);
    auto* meeting = reinterpret_cast<Sums*>(pixels(0)) + lane_;
    for (int j = 0; j < 2 * last_steps; ++j) meeting[warp_ * of_warp + 32 * j] = gradient_below[j];
    __syncthreads();
    const auto finish = [&](int l, int pair, const Rows& value, Sums(&c)[2]) {
      if constexpr (records) {
        for (int j = 0; j < 2; ++j) {
          const unsigned low = value.a[2 * j], high = value.a[2 * j + 1];
          c[j] = {low & 0xFFFF ? c[j].x : 0.0f, low >> 16 ? c[j].y : 0.0f, high & 0xFFFF ? c[j].z : 0.0f,
                  high >> 16 ? c[j].w : 0.0f};
        }
        record(spec_.tape.delta, l, pair, c);
      }
      return where_positive(value, as_rows(c[0], c[1]));
    };
    Rows value[own];  // of the first layer: parts of ∇_z will lie there
    each_own([&](int i, int pair) {
      value[i] = rows(at().first, pair);
      Sums c[2] = {};
      for (int warp = 0; warp < block_warps; ++warp)
        for (int j = 0; j < 2; ++j) c[j] = c[j] + meeting[warp * of_warp + 32 * (2 * pair + j)];
      set_rows(at().second, pair, finish(1, pair, rows(at().second, pair), c));
    });
    __syncthreads();
    if constexpr (!records) begin_stream();
    Rows delta[hidden_steps];
    read(delta, at().second);
    Sums z[2 * in_steps] = {};
    each_own([&](int i, int pair) {
      Sums c[2] = {};
#pragma unroll
      for (int p = 0; p < hidden_steps; ++p) back(c, delta[p], tiles(Shape::first_tiles + hidden_steps * p + pair));
      const Rows first = finish(0, pair, value[i], c);
      if constexpr (!records) back(z, first, tiles(in_steps * pair));
    });
    if constexpr (!records) set_parts(z);
  }
  // The warp's parts of ∇_z.
  __device__ __forceinline__ void set_parts(const Sums (&z)[2 * in_steps]) const {
    Sums* parts = shared<Sums>(at().parts) + lane_;
    for (int j = 0; j < 2 * in_steps; ++j) parts[(warp_ * 2 * in_steps + j) * 32] = z[j];
  }

  int pairs_;
  unsigned phases_ = 0;  // of the ring's boxes
};

}  // namespace hone::cuda
