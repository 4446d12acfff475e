#pragma once

#include <cuda_fp16.h>

#include "hone/engine/cuda/refinement.cuh"

namespace hone::cuda {

// How large a decoder may be whose weights stay in the registers of a cluster, as tiles of 16 units. `first_tiles` = 0:
// no hidden layers; else two. A block holds slices of the second hidden layer (of `slice_pairs` pairs of units) and of
// the pixels.
template <int blocks_, int latent_tiles_, int first_tiles_, int slice_pairs_, int pixel_tiles_>
struct RegisterShape {
  static constexpr int blocks = blocks_, latent_tiles = latent_tiles_, first_tiles = first_tiles_,
                       slice_pairs = slice_pairs_, pixel_tiles = pixel_tiles_;
  static constexpr bool hidden = first_tiles > 0;
  static constexpr int second_pairs = blocks * slice_pairs, second_tiles = second_pairs / 8;
  static constexpr int slice_tiles = (slice_pairs + 7) / 8;
  static constexpr int small_fragments =
      hidden ? 2 * latent_tiles + 2 * slice_tiles : 0;  // a warp's, of the hidden layers
  static_assert(second_pairs % 8 == 0 && first_tiles <= warps && second_tiles <= warps);
  static_assert(pixel_tiles * (hidden ? 2 : 1) <= warps && (hidden || warps % latent_tiles == 0));

  static constexpr bool holds(const Net& net) {
    if (net.depth != (hidden ? 3 : 1) || net.inputs() > 16 * latent_tiles) return false;
    if (net.outputs() > blocks * 16 * pixel_tiles) return false;
    return !hidden || (net.layer[0].outputs <= 16 * first_tiles && net.layer[1].outputs <= 2 * second_pairs);
  }
};
using TwoHiddenLayers = RegisterShape<8, 1, 13, 13, 7>;  // up to 16, 208, 208, 896 units
using NoHiddenLayers = RegisterShape<4, 4, 0, 0, 13>;    // up to 64, 832

// Where a block keeps what is not in registers. Activations are words of two halves, (8 chains a tile of chains, then
// pairs of units, then chains): a fragment touches every bank once.
template <class Shape, int NT>
struct RegisterPlaces {
  static constexpr int NC = 8 * NT;
  int input = 0, values = 0, residual = 0, delta = 0, bias = 0, parts = 0, outbox = 0, sums = 0, answers = 0,
      log_likelihoods = 0, partial_values = 0, boxes = 0, fragments = 0, bytes = 0;

  __host__ __device__ constexpr RegisterPlaces() {
    Places places;
    input = places.take<unsigned>(NC * 8 * Shape::latent_tiles);
    values = places.take<unsigned>(NC * Shape::second_pairs);
    residual = places.take<unsigned>(NC * 8 * Shape::pixel_tiles);
    delta = places.take<unsigned>(NC * 8 * Shape::slice_tiles);
    bias = places.take<float>(16 * Shape::slice_tiles);
    const int first = Shape::first_tiles * Shape::slice_tiles, halves = Shape::hidden ? Shape::pixel_tiles : 0;
    const int last = Shape::hidden ? Shape::first_tiles * Shape::latent_tiles : warps;
    parts = places.take<float>(128 * NT * max_of(first, max_of(halves, last)));
    outbox = places.take<float>(NC * max_of(Shape::slice_pairs, 16 * Shape::latent_tiles));
    sums = places.take<float>(2 * NC * Shape::blocks * Shape::slice_pairs);
    answers = places.take<float>(2 * Shape::blocks * NC * 16 * Shape::latent_tiles);
    log_likelihoods = places.take<double>(2 * Shape::blocks * NC);
    partial_values = places.take<double>(Shape::pixel_tiles * NC);
    boxes = places.take<unsigned long long>(4);
    fragments = places.take<uint4>(threads * Shape::small_fragments);
    bytes = places.bytes();
  }
  static constexpr int point_stride = 16 * Shape::latent_tiles;  // of the chains' doubles
  __host__ __device__ constexpr ChainPlaces chains() const { return {bytes, NC, point_stride}; }
  static __host__ __device__ constexpr int max_of(int a, int b) { return a > b ? a : b; }
};

// Where weights wait on their way to the registers, (inputs, stride) a layer: floats of a stride that is 20 or 4 more
// than a multiple of 32, so that few fragments' words share a bank.
template <class Shape>
struct RegisterStaging {
  static constexpr int second_width = Shape::hidden ? 2 * Shape::slice_pairs : 1;
  static constexpr int first_stride = 16 * Shape::first_tiles + 4, second_stride = (second_width + 3) / 32 * 32 + 36,
                       last_stride = 16 * Shape::pixel_tiles + 4;
  int first = 0, second = 0, last = 0, bytes = 0;

  __host__ __device__ constexpr RegisterStaging() {
    Places places;
    first = places.take<float>(Shape::hidden ? 16 * Shape::latent_tiles * first_stride : 0);
    second = places.take<float>(16 * Shape::first_tiles * second_stride);
    last = places.take<float>((Shape::hidden ? 2 * Shape::second_pairs : 16 * Shape::latent_tiles) * last_stride);
    bytes = places.bytes();
  }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Two numbers as halves, which have tf32's ten bits of mantissa; beyond 65504 they stay there.
__device__ __forceinline__ unsigned packed(float low, float high) {
  unsigned word;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ float2 unpacked(unsigned word) { return __half22float2(*reinterpret_cast<__half2*>(&word)); }
__device__ __forceinline__ float positive(float x) { return fmaxf(x, 0.0f); }
// A number where its half of the word is positive, else 0.
__device__ __forceinline__ float2 where_positive(unsigned halves, float low, float high) {
  const float2 h = unpacked(halves);
  return {h.x > 0 ? low : 0.0f, h.y > 0 ? high : 0.0f};
}

// (16, 16) weights of a product, lane = 4 g + t: row 2 g of the tile at k, row 2 g + 1 at k, and both at the second
// k's. So the sums that a lane gets belong to a pair of neighbouring units.
struct alignas(16) Fragment {
  unsigned a[4];
};
// c (pair of units g, two chains): (low, 2 t), (low, 2 t + 1), (high, 2 t), (high, 2 t + 1); b: (k, chain g)
__device__ __forceinline__ void multiply_add(float (&c)[4], const Fragment& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.a[0]), "r"(a.a[1]), "r"(a.a[2]), "r"(a.a[3]), "r"(b0), "r"(b1));
}
// (g; 2 t, 2 t + 1) → (2 t, 2 t + 1; g)
__device__ __forceinline__ unsigned transposed(unsigned word) {
  unsigned result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

// A slice of a layer's weights as it came, (inputs, stride).
template <int stride>
struct StagedWeights {
  const float* weights;
  __device__ float operator()(int row, int local) const { return weights[row * stride + local]; }
};

// A block's part of a Bernoulli decoder with ReLUs. The last layer's weights lie in registers, as fragments, for both
// directions: its products read nothing but activations. The hidden layers' fragments, which are few, lie in shared
// memory: the registers are better used for addresses. Where the results of a tile are what the same warp needs next
// (first layer → second forward, first hidden → z backward) they never leave the warp.
template <class Shape, int NT>
class RegisterDecoder {
 public:
  static constexpr int NC = 8 * NT;

  __device__ RegisterDecoder(const Space& space, const TrajectorySpec& spec, char* shared, int run, int first)
      : space_(space),
        spec_(spec),
        shared_(shared),
        boxes_(reinterpret_cast<Mailbox*>(shared + at().boxes)),
        rank_(static_cast<int>(cooperative_groups::this_cluster().block_rank())),
        run_(run),
        first_(first) {}

  __device__ int rank() const { return rank_; }
  static __device__ constexpr int point_stride() { return RegisterPlaces<Shape, NT>::point_stride; }
  static __device__ constexpr ChainPlaces places() { return at().chains(); }
  __device__ void load();
  __device__ __forceinline__ void set_input(int chain, int d, float z) {
    const unsigned word = packed(z, z);
    reinterpret_cast<unsigned short*>(
        words(at().input))[2 * (((chain / 8 * latent_tiles * 8) + d / 2) * 8 + chain % 8) + d % 2] =
        static_cast<unsigned short>(word);
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value);
  __device__ __forceinline__ double gradient(int chain, int d) const {
    const float* answers = floats(at().answers) + ((parity_ ^ 1) * blocks * NC + chain) * 16 * latent_tiles + d;
    float sum = 0;
#pragma unroll
    for (int rank = 0; rank < blocks; ++rank) sum += answers[rank * NC * 16 * latent_tiles];
    return sum;
  }
  __device__ __forceinline__ double log_likelihood(int chain) const {
    const double* values =
        reinterpret_cast<const double*>(shared_ + at().log_likelihoods) + (parity_ ^ 1) * blocks * NC + chain;
    double sum = 0;
#pragma unroll
    for (int rank = 0; rank < blocks; ++rank) sum += values[rank * NC];
    return sum;
  }

 private:
  static constexpr bool hidden = Shape::hidden;
  static constexpr int blocks = Shape::blocks, latent_tiles = Shape::latent_tiles, first_tiles = Shape::first_tiles,
                       slice_pairs = Shape::slice_pairs, pixel_tiles = Shape::pixel_tiles,
                       second_pairs = Shape::second_pairs, second_tiles = Shape::second_tiles,
                       slice_tiles = Shape::slice_tiles;
  // steps of k of the last layer's forward product that a warp makes: with hidden layers two warps share a tile
  static constexpr int last_steps = hidden ? second_tiles : latent_tiles,
                       half_steps = hidden ? (second_tiles + 1) / 2 : latent_tiles;
  // without hidden layers, so many warps share a tile of the product back to z
  static constexpr int back_parts = hidden ? 1 : warps / latent_tiles,
                       back_steps = hidden ? pixel_tiles : (pixel_tiles + back_parts - 1) / back_parts;
  static constexpr int answer_parts = hidden ? first_tiles : back_parts;
  enum Box { values_box, sums_box, answer_box, box_count = answer_box + 2 };  // two for answers, in turn

  static __host__ __device__ constexpr RegisterPlaces<Shape, NT> at() { return {}; }
  // A warp's task of so many for each tile of chains.
  struct Task {
    int n, item;
  };
  // do_one(task) for `count` tasks, shared out over the warps: without a loop where each has one at most.
  template <int count, class DoOne>
  __device__ __forceinline__ void by_warps(DoOne do_one) const {
    if constexpr (count <= warps) {
      if (warp_ < count) do_one(warp_);
    } else {
      for (int task = warp_; task < count; task += warps) do_one(task);
    }
  }
  template <int items>
  static __device__ __forceinline__ Task split(int task) {
    if constexpr (NT == 1)
      return {0, task};
    else
      return {task / items, task % items};
  }
  __device__ unsigned* words(int place) const { return reinterpret_cast<unsigned*>(shared_ + place); }
  __device__ float* floats(int place) const { return reinterpret_cast<float*>(shared_ + place); }
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  // This block's slice of a layer's outputs.
  __device__ int slice_of(int layer) const { return ceil_div(spec_.decoder.layer[layer].outputs, blocks); }
  __device__ int begin_of(int layer) const { return rank_ * slice_of(layer); }
  __device__ int count_of(int layer) const {
    return min(slice_of(layer), spec_.decoder.layer[layer].outputs - begin_of(layer));
  }
  __device__ int unit_of(int layer, int local) const {  // −1: it is not there
    return local < count_of(layer) ? begin_of(layer) + local : -1;
  }
  __device__ int pixel(int local) const { return unit_of(hidden ? 2 : 0, local); }
  __device__ float* recorded(float* const (&arrays)[max_layers], int l, int chain, int unit) const {  // of the tape
    return arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * spec_.decoder.layer[l].ld +
           unit;
  }

  // k of a fragment: as they lie, or as `transposed` leaves them
  struct Columns {
    int k[4];
  };
  // Fragments of the hidden layers: warp = tile of the first layer, be it results or k.
  enum Small {
    first_forward = 0,
    second_forward = latent_tiles,
    second_back = second_forward + slice_tiles,
    first_back = second_back + slice_tiles
  };
  __device__ __forceinline__ Fragment& small(int i) const {
    return reinterpret_cast<Fragment*>(shared_ + at().fragments)[i * threads + static_cast<int>(threadIdx.x)];
  }
  __device__ Columns in_order(int step) const {
    const int k = 16 * step + 2 * t_;
    return {{k, k + 1, k + 8, k + 9}};
  }
  __device__ Columns by_parity(int step) const {
    const int k = 16 * step + 4 * t_;
    return {{k, k + 2, k + 1, k + 3}};
  }
  template <class Weight>  // (row, k) → number
  __device__ Fragment fragment(int tile, const Columns& c, Weight weight) const {
    const int low = 16 * tile + 2 * g_, high = low + 1;
    return {{packed(weight(low, c.k[0]), weight(low, c.k[1])), packed(weight(high, c.k[0]), weight(high, c.k[1])),
             packed(weight(low, c.k[2]), weight(low, c.k[3])), packed(weight(high, c.k[2]), weight(high, c.k[3]))}};
  }
  __device__ __forceinline__ void add_product(float (&c)[4], const Fragment& a, const unsigned* b, int pairs, int n,
                                              int step) const {
    const unsigned* at = b + (n * pairs + 8 * step + t_) * 8 + g_;
    multiply_add(c, a, at[0], at[4 * 8]);
  }
  // Sums of a tile for the others to add up: (pair of units, chain, low or high).
  __device__ __forceinline__ void leave(int part, const float (&c)[4]) const {
    *reinterpret_cast<float4*>(floats(at().parts) + 128 * part + 4 * lane_) = make_float4(c[0], c[2], c[1], c[3]);
  }

  template <int rows, int stride, class UnitOfRow>
  __device__ StagedWeights<stride> stage(const Layer& layer, int begin, int cols, int place,
                                         UnitOfRow unit_of_row) const;
  __device__ void load_vectors();
  // The outbox' packets of four words → all blocks, at place_of(packet), or nowhere where that is negative. A warp
  // sends to one block at a time, to neighbouring places: what costs is the number of blocks and places of an
  // instruction.
  template <int packets, class PlaceOf>
  __device__ __forceinline__ void send_outbox(int box, PlaceOf place_of) const {
    constexpr int parts = (packets + 31) / 32;
    by_warps<parts * blocks>([&](int task) {
      const int packet = parts == 1 ? lane_ : task / blocks * 32 + lane_;
      const int place = packet < packets ? place_of(packet) : -1;
      const unsigned remote = remote_address(shared_, parts == 1 ? task : task % blocks);
      if (place >= 0)
        send(remote + place, remote + at().boxes + 8 * box,
             reinterpret_cast<const uint4*>(shared_ + at().outbox)[packet]);
    });
  }
  template <bool records>
  __device__ void forward_hidden();
  template <bool records>
  __device__ void spread_second();
  template <bool records>
  __device__ void compare(bool wants_value, const double* value);
  template <bool records>
  __device__ double finish(int n, int chain, int x, float low, float high, bool wants_value, const double* value) const;
  template <bool records>
  __device__ void backward_hidden();
  template <bool records>
  __device__ void gather_deltas();
  __device__ void record_first_delta(int n, const float (&c)[4]) const;
  __device__ void write_first_delta() const;
  __device__ void backward_last();
  __device__ void answer(bool wants_value);

  const Space& space_;
  const TrajectorySpec& spec_;
  char* shared_;
  Mailboxes<box_count> boxes_;
  int rank_, run_, first_, parity_ = 0;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, lane_ = static_cast<int>(threadIdx.x) % 32, g_ = lane_ / 4,
            t_ = lane_ % 4;

  Fragment last_forward_[half_steps];  // warp = tile of pixels, and half of k
  Fragment last_back_[back_steps];     // warp = tile of the second layer, or of z and part of k
  float first_bias_[2], last_bias_[2], x_[NT][hidden ? 2 : 4];
  unsigned first_value_[NT][2];  // the first layer's tile: (low, chains), (high, chains)
};

// Columns [begin, begin + cols) of a layer on their way to shared memory: `rows` rows, row r holds unit unit_of_row(r),
// or zeros where that is negative or beyond. Copies are of 16 bytes, so some columns more come along.
template <class Shape, int NT>
template <int rows, int stride, class UnitOfRow>
__device__ StagedWeights<stride> RegisterDecoder<Shape, NT>::stage(const Layer& layer, int begin, int cols, int place,
                                                                   UnitOfRow unit_of_row) const {
  const int shift = begin % 4, chunks = (shift + max(cols, 0) + 3) / 4;
  const float* from = space_.parameters + run_ * space_.stride + layer.weight + begin - shift;
  float* to = floats(place);
#pragma unroll 4
  for (int row = warp_; row < rows; row += warps) {
    const int unit = unit_of_row(row);
    const bool there = unit >= 0 && unit < layer.inputs;
    const float* source = from + static_cast<std::size_t>(there ? unit : 0) * layer.ld;
    for (int chunk = lane_; chunk < chunks; chunk += 32)
      copy_async(to + row * stride + 4 * chunk, source + 4 * chunk, there);
  }
  return {to + shift};
}

// The weights come through shared memory, where later everything else lies.
template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::load() {
  using Staging = RegisterStaging<Shape>;
  constexpr Staging staging;
  const Layer& last = spec_.decoder.layer[hidden ? 2 : 0];
  const int pixels = count_of(hidden ? 2 : 0), slice = hidden ? count_of(1) : 0;
  const int second_slice = hidden ? slice_of(1) : 0;
  const auto as_it_is = [](int row) { return row; };
  const auto padded = [&](int row) {  // of the second hidden layer
    const int local = row % Staging::second_width;
    return local < second_slice ? row / Staging::second_width * second_slice + local : -1;
  };
  StagedWeights<Staging::first_stride> first_weights{};
  StagedWeights<Staging::second_stride> second_weights{};
  StagedWeights<Staging::last_stride> last_weights{};
  if constexpr (hidden) {
    const Layer &first = spec_.decoder.layer[0], &second = spec_.decoder.layer[1];
    first_weights = stage<16 * latent_tiles, Staging::first_stride>(first, 0, first.outputs, staging.first, as_it_is);
    second_weights =
        stage<16 * first_tiles, Staging::second_stride>(second, begin_of(1), slice, staging.second, as_it_is);
    last_weights = stage<2 * second_pairs, Staging::last_stride>(last, begin_of(2), pixels, staging.last, padded);
  } else {
    last_weights = stage<16 * latent_tiles, Staging::last_stride>(last, begin_of(0), pixels, staging.last, as_it_is);
  }
  load_vectors();
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  Fragment small_ones[hidden ? Shape::small_fragments : 1];
  if constexpr (hidden) {
    const int units = spec_.decoder.layer[0].outputs;
    const auto of_first = [&](int unit, int d) { return unit < units ? first_weights(d, unit) : 0.0f; };
    const auto of_second = [&](int local, int unit) { return local < slice ? second_weights(unit, local) : 0.0f; };
#pragma unroll
    for (int s = 0; s < latent_tiles; ++s) {
      small_ones[first_forward + s] = fragment(warp_, in_order(s), of_first);
      small_ones[first_back + s] = fragment(s, by_parity(warp_), [&](int d, int unit) { return of_first(unit, d); });
    }
#pragma unroll
    for (int m = 0; m < slice_tiles; ++m) {
      small_ones[second_forward + m] = fragment(m, by_parity(warp_), of_second);
      small_ones[second_back + m] =
          fragment(warp_, in_order(m), [&](int unit, int local) { return of_second(local, unit); });
    }
  }
  const auto of_last = [&](int local, int from) { return local < pixels ? last_weights(from, local) : 0.0f; };
  const int tile = hidden ? warp_ % pixel_tiles : warp_, half = hidden ? warp_ / pixel_tiles : 0;
#pragma unroll
  for (int i = 0; i < half_steps; ++i) {
    const int step = half * half_steps + i;
    last_forward_[i] = step < last_steps ? fragment(tile, in_order(step), of_last) : Fragment{};
  }
  const int back_tile = hidden ? warp_ : warp_ % latent_tiles, part = hidden ? 0 : warp_ / latent_tiles;
#pragma unroll
  for (int i = 0; i < back_steps; ++i)
    last_back_[i] = back_tile < last_steps ? fragment(back_tile, in_order(part + i * back_parts),
                                                      [&](int from, int local) { return of_last(local, from); })
                                           : Fragment{};
  __syncthreads();
  auto* all = reinterpret_cast<float4*>(shared_);
  for (int i = threadIdx.x; i < at().bytes / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  if constexpr (hidden) {
#pragma unroll
    for (int i = 0; i < Shape::small_fragments; ++i) small(i) = small_ones[i];
    const Layer& second = spec_.decoder.layer[1];
    const float* biases = space_.parameters + run_ * space_.stride + second.bias + begin_of(1);
    for (int local = threadIdx.x; second.has_bias && local < slice; local += threads)
      floats(at().bias)[local] = biases[local];
  }
  boxes_.set_up();
}

// Biases and data of what a lane computes.
template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::load_vectors() {
  const float* parameters = space_.parameters + run_ * space_.stride;
  const Layer &first = spec_.decoder.layer[0], &last = spec_.decoder.layer[hidden ? 2 : 0];
  const int tile = hidden ? warp_ % pixel_tiles : warp_, half = hidden ? warp_ / pixel_tiles : 0;
  const float* x = space_.of(space_.x, run_);
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int unit = 16 * warp_ + 2 * g_ + e, to = pixel(16 * tile + 2 * g_ + e);
    first_bias_[e] = hidden && first.has_bias && unit < first.outputs ? parameters[first.bias + unit] : 0.0f;
    last_bias_[e] = last.has_bias && to >= 0 ? parameters[last.bias + to] : 0.0f;
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
      for (int other = 0; other < (hidden ? 1 : 2); ++other) {
        const int chain = 8 * n + 2 * t_ + (hidden ? half : other);
        x_[n][2 * other + e] =
            to >= 0 && real(chain) ? x[static_cast<std::size_t>(first_ + chain) * space_.ld_pixels + to] : 0.0f;
      }
  }
}

template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::forward_hidden() {
  if (warp_ < first_tiles) {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      float c[4] = {};
#pragma unroll
      for (int s = 0; s < latent_tiles; ++s)
        add_product(c, small(first_forward + s), words(at().input), 8 * latent_tiles, n, s);
      first_value_[n][0] = packed(positive(c[0] + first_bias_[0]), positive(c[1] + first_bias_[0]));
      first_value_[n][1] = packed(positive(c[2] + first_bias_[1]), positive(c[3] + first_bias_[1]));
      const unsigned b0 = transposed(first_value_[n][0]), b1 = transposed(first_value_[n][1]);
#pragma unroll
      for (int m = 0; m < slice_tiles; ++m) {
        float d[4] = {};
        multiply_add(d, small(second_forward + m), b0, b1);
        leave((warp_ * NT + n) * slice_tiles + m, d);
      }
      if constexpr (records)
        if (warp_ % blocks == rank_)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float2 h = unpacked(first_value_[n][e]);
            const int unit = 16 * warp_ + 2 * g_ + e, chain = 8 * n + 2 * t_;
            if (unit >= spec_.decoder.layer[0].outputs) continue;
            if (real(chain)) *recorded(spec_.tape.value, 0, chain, unit) = h.x;
            if (real(chain + 1)) *recorded(spec_.tape.value, 0, chain + 1, unit) = h.y;
          }
    }
  }
  __syncthreads();
  spread_second<records>();
  boxes_.receive(values_box, second_pairs * NC * 4);
}

// Sums over `parts` arrays of pairs of numbers, `distance` floats apart, of which the lane reads every fourth: lanes of
// one number mod 8 get the same sums.
template <int parts, int distance>
__device__ __forceinline__ float2 sum_of_parts(const float* from) {
  const int quarter = static_cast<int>(threadIdx.x) % 32 / 8;
  float2 sum = {0, 0};
#pragma unroll
  for (int i = 0; i < (parts + 3) / 4; ++i)
    if (4 * i + 3 < parts || 4 * i + quarter < parts) {
      const float2 two = *reinterpret_cast<const float2*>(from + (4 * i + quarter) * distance);
      sum.x += two.x;
      sum.y += two.y;
    }
#pragma unroll
  for (int offset = 8; offset < 32; offset *= 2) {
    sum.x += __shfl_xor_sync(0xFFFFFFFFu, sum.x, offset);
    sum.y += __shfl_xor_sync(0xFFFFFFFFu, sum.y, offset);
  }
  return sum;
}

// The slice of the second layer → all blocks: a pair of units a warp.
template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::spread_second() {
  by_warps<NT * slice_pairs>([&](int task) {
    const auto [n, pair] = split<slice_pairs>(task);
    const int chain = lane_ % 8;
    const float2 sum = sum_of_parts<first_tiles, NT * slice_tiles * 128>(
        floats(at().parts) + (n * slice_tiles + pair / 8) * 128 + pair % 8 * 16 + 2 * chain);
    const float2 bias = *reinterpret_cast<const float2*>(floats(at().bias) + 2 * pair);
    const unsigned word = packed(positive(sum.x + bias.x), positive(sum.y + bias.y));
    if (lane_ < 8) words(at().outbox)[task * 8 + chain] = word;
    if constexpr (records) {
      const float2 h = unpacked(word);
      if (lane_ < 8 && real(8 * n + chain)) {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (const int unit = unit_of(1, 2 * pair + e); unit >= 0)
            *recorded(spec_.tape.value, 1, 8 * n + chain, unit) = e == 0 ? h.x : h.y;
      }
    }
  });
  __syncthreads();
  constexpr int packets = 2 * slice_pairs;  // of a tile of chains, for one block
  send_outbox<NT * packets>(values_box, [&](int packet) {
    const auto [n, place] = split<packets>(packet);
    return at().values + ((n * second_pairs + rank_ * slice_pairs) * 8 + 4 * place) * 4;
  });
}

// A pair of pixels of a chain: the residual and, where wanted, log p. x: where its data are.
template <class Shape, int NT>
template <bool records>
__device__ __forceinline__ double RegisterDecoder<Shape, NT>::finish(int n, int chain, int x, float low, float high,
                                                                     bool wants_value, const double* value) const {
  const int tile = hidden ? warp_ % pixel_tiles : warp_;
  const float a[2] = {low + last_bias_[0], high + last_bias_[1]};
  float r[2];
  double sum = 0;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    r[e] = residual<Math::tf32>(Density::bernoulli, a[e], x_[n][x + e]);
    const int to = pixel(16 * tile + 2 * g_ + e);
    if (wants_value && to >= 0) sum += log_probability<Math::tf32>(Density::bernoulli, a[e], x_[n][x + e]);
    if constexpr (records) {
      if (value[8 * n + chain] == -infinity) r[e] = 0;
      if (to >= 0 && real(8 * n + chain)) *recorded(spec_.tape.delta, hidden ? 2 : 0, 8 * n + chain, to) = r[e];
    }
  }
  words(at().residual)[(n * 8 * pixel_tiles + 8 * tile + g_) * 8 + chain] = packed(r[0], r[1]);
  return sum;
}

template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::compare(bool wants_value, const double* value) {
  const int tile = hidden ? warp_ % pixel_tiles : warp_, half = hidden ? warp_ / pixel_tiles : 0;
  if (warp_ < pixel_tiles * (hidden ? 2 : 1)) {
    const unsigned* below = words(hidden ? at().values : at().input);
    constexpr int pairs = hidden ? second_pairs : 8 * latent_tiles;
    float c[NT][4] = {};
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      float odd[4] = {};  // two sums at a time: a product waits for the one before it
#pragma unroll
      for (int i = 0; i < half_steps; ++i)
        if (!hidden || i + 1 < half_steps || half * half_steps + i < last_steps)
          add_product(i % 2 ? odd : c[n], last_forward_[i], below, pairs, n, half * half_steps + i);
#pragma unroll
      for (int e = 0; e < 4; ++e) c[n][e] += odd[e];
    }
    double sums[NT][2] = {};
    if constexpr (hidden) {  // a tile's two warps share its chains: even ones and odd ones
      float* parts = floats(at().parts);
#pragma unroll
      for (int n = 0; n < NT; ++n)
        *reinterpret_cast<float2*>(parts + ((warp_ * NT + n) * 32 + lane_) * 2) =
            half ? make_float2(c[n][0], c[n][2]) : make_float2(c[n][1], c[n][3]);
      asm volatile("bar.sync %0, 64;" ::"r"(1 + tile) : "memory");
      const int other = half ? warp_ - pixel_tiles : warp_ + pixel_tiles;
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const float2 theirs = *reinterpret_cast<const float2*>(parts + ((other * NT + n) * 32 + lane_) * 2);
        const float low = (half ? c[n][1] : c[n][0]) + theirs.x, high = (half ? c[n][3] : c[n][2]) + theirs.y;
        sums[n][0] = finish<records>(n, 2 * t_ + half, 0, low, high, wants_value, value);
      }
    } else {
#pragma unroll
      for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          sums[n][e] = finish<records>(n, 2 * t_ + e, 2 * e, c[n][e], c[n][2 + e], wants_value, value);
    }
    if (wants_value) {
      auto* partial = reinterpret_cast<double*>(shared_ + at().partial_values) + tile * NC;
#pragma unroll
      for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int e = 0; e < (hidden ? 1 : 2); ++e) {
          double sum = sums[n][e];
#pragma unroll
          for (int offset = 4; offset < 32; offset *= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
          if (g_ == 0) partial[8 * n + 2 * t_ + (hidden ? half : e)] = sum;
        }
    }
  }
  __syncthreads();
}

// Pixels → the second layer's sums, which go to their owners.
template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::backward_hidden() {
  if (warp_ < second_tiles) {
    const int pair = 8 * warp_ + g_, owner = pair / slice_pairs, local = pair % slice_pairs;
    const unsigned remote = remote_address(shared_, owner);
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      float c[4] = {}, odd[4] = {};
#pragma unroll
      for (int s = 0; s < pixel_tiles; ++s)
        add_product(s % 2 ? odd : c, last_back_[s], words(at().residual), 8 * pixel_tiles, n, s);
      send(remote + at().sums + (((rank_ * NT + n) * slice_pairs + local) * 16 + 4 * t_) * 4,
           remote + at().boxes + 8 * sums_box,
           make_uint4(__float_as_uint(c[0] + odd[0]), __float_as_uint(c[2] + odd[2]), __float_as_uint(c[1] + odd[1]),
                      __float_as_uint(c[3] + odd[3])));
    }
  }
  boxes_.receive(sums_box, blocks * slice_pairs * NC * 8);
  gather_deltas<records>();
  __syncthreads();
  if (warp_ < first_tiles) {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      float c[4] = {};
#pragma unroll
      for (int m = 0; m < slice_tiles; ++m)
        add_product(c, small(second_back + m), words(at().delta), 8 * slice_tiles, n, m);
      const float2 low = where_positive(first_value_[n][0], c[0], c[1]);
      const float2 high = where_positive(first_value_[n][1], c[2], c[3]);
      if constexpr (records) {
        record_first_delta(n, {low.x, low.y, high.x, high.y});
      } else {
        const unsigned b0 = transposed(packed(low.x, low.y)), b1 = transposed(packed(high.x, high.y));
#pragma unroll
        for (int m = 0; m < latent_tiles; ++m) {
          float d[4] = {};
          multiply_add(d, small(first_back + m), b0, b1);
          leave((warp_ * NT + n) * latent_tiles + m, d);
        }
      }
    }
  }
  if constexpr (records) write_first_delta();
}

// The slice's deltas from all blocks' sums: a pair of units a warp.
template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::gather_deltas() {
  by_warps<NT * slice_pairs>([&](int task) {
    const auto [n, pair] = split<slice_pairs>(task);
    const int chain = lane_ % 8;
    const unsigned h = words(at().values)[(n * second_pairs + rank_ * slice_pairs + pair) * 8 + chain];
    const float2 sum =
        sum_of_parts<blocks, NT * slice_pairs * 16>(floats(at().sums) + (n * slice_pairs + pair) * 16 + 2 * chain);
    const float2 delta = where_positive(h, sum.x, sum.y);
    if (lane_ >= 8) return;
    words(at().delta)[(n * 8 * slice_tiles + pair) * 8 + chain] = packed(delta.x, delta.y);
    if constexpr (records) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int unit = unit_of(1, 2 * pair + e);
        if (unit >= 0 && real(8 * n + chain))
          *recorded(spec_.tape.delta, 1, 8 * n + chain, unit) = e == 0 ? delta.x : delta.y;
      }
    }
  });
}

// The first layer's deltas are sums over the cluster: tile m's are made by block m mod blocks.
template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::record_first_delta(int n, const float (&c)[4]) const {
  constexpr int tiles = (first_tiles + blocks - 1) / blocks;
  float* mine = floats(at().parts) + ((rank_ * tiles + warp_ / blocks) * NT + n) * 128 + 4 * lane_;
  *cooperative_groups::this_cluster().map_shared_rank(reinterpret_cast<float4*>(mine), warp_ % blocks) =
      make_float4(c[0], c[1], c[2], c[3]);
}
template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::write_first_delta() const {
  constexpr int tiles = (first_tiles + blocks - 1) / blocks;
  static_assert(!hidden || tiles * blocks <= first_tiles * slice_tiles);  // what fits where the parts lie
  cooperative_groups::this_cluster().sync();
  for (int task = warp_; task < tiles * NT; task += warps) {
    const int tile = task / NT * blocks + rank_, n = task % NT;
    if (tile >= first_tiles) continue;
    float sum[4] = {};
    for (int rank = 0; rank < blocks; ++rank) {
      const float4 c = *reinterpret_cast<const float4*>(floats(at().parts) +
                                                        ((rank * tiles + task / NT) * NT + n) * 128 + 4 * lane_);
      sum[0] += c.x;
      sum[1] += c.y;
      sum[2] += c.z;
      sum[3] += c.w;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int unit = 16 * tile + 2 * g_ + e / 2, chain = 8 * n + 2 * t_ + e % 2;
      if (unit < spec_.decoder.layer[0].outputs && real(chain)) *recorded(spec_.tape.delta, 0, chain, unit) = sum[e];
    }
  }
}

template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::backward_last() {
  const int tile = warp_ % latent_tiles, part = warp_ / latent_tiles;
#pragma unroll
  for (int n = 0; n < NT; ++n) {
    float c[4] = {};
#pragma unroll
    for (int i = 0; i < back_steps; ++i)
      if (i + 1 < back_steps || part + i * back_parts < pixel_tiles)
        add_product(c, last_back_[i], words(at().residual), 8 * pixel_tiles, n, part + i * back_parts);
    leave((part * NT + n) * latent_tiles + tile, c);
  }
}

// This block's part of ∇_z log p(x | z) and, where wanted, of log p(x | z) → all blocks.
template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::answer(bool wants_value) {
  __syncthreads();
  by_warps<NT * 8 * latent_tiles>([&](int task) {  // a pair of dimensions a warp
    const auto [n, pair] = split<8 * latent_tiles>(task);
    const int chain = lane_ % 8;
    if (2 * pair >= space_.latent) return;
    const float2 sum = sum_of_parts<answer_parts, NT * latent_tiles * 128>(
        floats(at().parts) + (n * latent_tiles + pair / 8) * 128 + pair % 8 * 16 + 2 * chain);
    if (lane_ < 8)
      *reinterpret_cast<float2*>(floats(at().outbox) + (8 * n + chain) * 16 * latent_tiles + 2 * pair) = sum;
  });
  __syncthreads();
  send_outbox<NC * 4 * latent_tiles>(answer_box + parity_, [&](int packet) {
    const bool used = 4 * (packet % (4 * latent_tiles)) < space_.latent;
    return used ? at().answers + ((parity_ * blocks + rank_) * NC * 16 * latent_tiles + 4 * packet) * 4 : -1;
  });
  if (wants_value) {
    const int to = warps - 1 - warp_;  // a block a warp
    if (to < blocks && lane_ < NC) {
      const auto* partial = reinterpret_cast<const double*>(shared_ + at().partial_values) + lane_;
      double sum = 0;
#pragma unroll
      for (int tile = 0; tile < pixel_tiles; ++tile) sum += partial[tile * NC];
      send(reinterpret_cast<double*>(shared_ + at().log_likelihoods) + (parity_ * blocks + rank_) * NC + lane_,
           boxes_[answer_box + parity_], to, sum);
    }
  }
  boxes_.receive(answer_box + parity_, blocks * NC * ((space_.latent + 3) / 4 * 16 + (wants_value ? 8 : 0)));
  parity_ ^= 1;
}

template <class Shape, int NT>
template <bool records>
__device__ void RegisterDecoder<Shape, NT>::evaluate(bool wants_value, const double* value) {
  if constexpr (hidden) forward_hidden<records>();
  compare<records>(wants_value, value);
  if constexpr (hidden)
    backward_hidden<records>();
  else if constexpr (!records)
    backward_last();
  if constexpr (!records) answer(wants_value);
}

#endif

}  // namespace hone::cuda
