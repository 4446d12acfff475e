#pragma once

#include "hone/engine/cuda/refinement.cuh"
#include "hone/engine/cuda/register_weights.cuh"

namespace hone::cuda {

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
    fragments = places.take<uint4>(threads * Shape::last_forward);
    bytes = places.bytes();
  }
  static constexpr int point_stride = 16 * Shape::latent_tiles;  // of the chains' doubles
  __host__ __device__ constexpr ChainPlaces chains() const { return {bytes, NC, point_stride}; }
  static __host__ __device__ constexpr int max_of(int a, int b) { return a > b ? a : b; }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ float2 unpacked(unsigned word) { return __half22float2(*reinterpret_cast<__half2*>(&word)); }
__device__ __forceinline__ float positive(float x) { return fmaxf(x, 0.0f); }
// A number where its half of the word is positive, else 0.
__device__ __forceinline__ float2 where_positive(unsigned halves, float low, float high) {
  const float2 h = unpacked(halves);
  return {h.x > 0 ? low : 0.0f, h.y > 0 ? high : 0.0f};
}

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
  static constexpr int last_steps = Shape::last_steps, half_steps = Shape::half_steps,
                       back_parts = Shape::back_parts, back_steps = Shape::back_steps;
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
  __device__ Slice slice_of(int layer) const { return {spec_.decoder.layer[layer], blocks, rank_}; }
  __device__ int pixel(int local) const { return slice_of(hidden ? 2 : 0).unit(local); }
  __device__ float* recorded(float* const (&arrays)[max_layers], int l, int chain, int unit) const {  // of the tape
    return arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * spec_.decoder.layer[l].ld +
           unit;
  }

  __device__ __forceinline__ Fragment& small(int i) const {
    return reinterpret_cast<Fragment*>(shared_ + at().fragments)[i * threads + static_cast<int>(threadIdx.x)];
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

template <class Shape, int NT>
__device__ void RegisterDecoder<Shape, NT>::load() {
  const auto* all_blocks = reinterpret_cast<const Fragment*>(space_.of(space_.packed, run_));
  const Fragment* from = all_blocks + rank_ * Shape::fragments * threads + threadIdx.x;
#pragma unroll
  for (int i = 0; i < half_steps; ++i) last_forward_[i] = from[(Shape::last_forward + i) * threads];
#pragma unroll
  for (int i = 0; i < back_steps; ++i) last_back_[i] = from[(Shape::last_back + i) * threads];
#pragma unroll
  for (int i = 0; i < Shape::last_forward; ++i) small(i) = from[i * threads];
  load_vectors();
  auto* all = reinterpret_cast<float4*>(shared_);
  for (int i = threadIdx.x; i < at().fragments / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  boxes_.set_up();
  if constexpr (hidden) {
    const Layer& second = spec_.decoder.layer[1];
    const Slice slice = slice_of(1);
    const float* biases = space_.parameters + run_ * space_.stride + second.bias + slice.begin;
    for (int local = threadIdx.x; second.has_bias && local < slice.count; local += threads)
      floats(at().bias)[local] = biases[local];
  }
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
        add_product(c, small(Shape::first_forward + s), words(at().input), 8 * latent_tiles, n, s);
      first_value_[n][0] = packed(positive(c[0] + first_bias_[0]), positive(c[1] + first_bias_[0]));
      first_value_[n][1] = packed(positive(c[2] + first_bias_[1]), positive(c[3] + first_bias_[1]));
      const unsigned b0 = transposed(first_value_[n][0]), b1 = transposed(first_value_[n][1]);
#pragma unroll
      for (int m = 0; m < slice_tiles; ++m) {
        float d[4] = {};
        multiply_add(d, small(Shape::second_forward + m), b0, b1);
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
          if (const int unit = slice_of(1).unit(2 * pair + e); unit >= 0)
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
        add_product(c, small(Shape::second_back + m), words(at().delta), 8 * slice_tiles, n, m);
      const float2 low = where_positive(first_value_[n][0], c[0], c[1]);
      const float2 high = where_positive(first_value_[n][1], c[2], c[3]);
      if constexpr (records) {
        record_first_delta(n, {low.x, low.y, high.x, high.y});
      } else {
        const unsigned b0 = transposed(packed(low.x, low.y)), b1 = transposed(packed(high.x, high.y));
#pragma unroll
        for (int m = 0; m < latent_tiles; ++m) {
          float d[4] = {};
          multiply_add(d, small(Shape::first_back + m), b0, b1);
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
        const int unit = slice_of(1).unit(2 * pair + e);
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
