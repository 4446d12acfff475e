#pragma once

#include <type_traits>

#include "hone/engine/cuda/refinement.cuh"
#include "hone/engine/cuda/tiles.cuh"

namespace hone::cuda {

// What lies where blocks of a team exchange numbers, until one is written: a NaN, which is never `publish`ed.
inline constexpr unsigned unwritten = 0xFFFFFFFFu;

// Numbers as the products of a team read them, by tiles of (16, 16) in the order of the tensor cores' fragments,
// lane = 4 g + t: a lane has rows g, g + 8 and columns 2 t, 2 t + 1 of both halves (8 columns each) of a tile of chains
// by units, which is how sums of products come; of a tile of weights (k, n) it has k = 2 t, 2 t + 1 of both halves and
// n = g, g + 8. As halves those are 16 bytes, as floats 32: then a step of k sums units 2 t and 2 t + 1 of 8, where the
// fragment's own order would be t and t + 4.
template <Math math_, bool halves>
struct TeamNumbers {
  static constexpr Math math = math_;
  static constexpr bool are_halves = halves;
  static constexpr int words = halves ? 1 : 2;  // of 16 bytes, of a lane and a tile

  // Place of an element in a tile of chains by units, in elements.
  static __device__ __forceinline__ int place(int chain, int unit) {
    const int lane = 4 * (chain % 8) + unit % 8 / 2, row = chain / 8, half = unit / 8;
    return halves ? lane * 8 + (half * 2 + row) * 2 + unit % 2 : (half * 32 + lane) * 4 + row * 2 + unit % 2;
  }
  static __device__ __forceinline__ void set(uint4* tile, int chain, int unit, float x) {
    if constexpr (halves)
      reinterpret_cast<unsigned short*>(tile)[place(chain, unit)] = static_cast<unsigned short>(packed(x, x));
    else
      reinterpret_cast<float*>(tile)[place(chain, unit)] = rounded<math>(x);
  }
  // A lane's sums of one half of a tile → shared memory, or another block's eyes (see `unwritten`).
  static __device__ __forceinline__ void store(uint4* tile, int half, const Sums& c) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (halves)
      reinterpret_cast<uint2*>(tile)[2 * lane + half] = make_uint2(packed(c.x, c.y), packed(c.z, c.w));
    else
      reinterpret_cast<Sums*>(tile)[32 * half + lane] =
          Sums{rounded<math>(c.x), rounded<math>(c.y), rounded<math>(c.z), rounded<math>(c.w)};
  }
  static __device__ __forceinline__ void publish(uint4* tile, int half, const Sums& c) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (halves) {  // every NaN becomes 7FFF
      uint2* to = reinterpret_cast<uint2*>(tile) + 2 * lane + half;
      asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(to), "r"(packed(c.x, c.y)), "r"(packed(c.z, c.w))
                   : "memory");
    } else {
      const auto word = [](float x) {
        const unsigned bits = __float_as_uint(rounded<math>(x));
        return bits == unwritten ? 0x7FFFFFFFu : bits;
      };
      asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(tile + 32 * half + lane), "r"(word(c.x)),
                   "r"(word(c.y)), "r"(word(c.z)), "r"(word(c.w))
                   : "memory");
    }
  }
  static __device__ __forceinline__ Sums load(const uint4* tile, int half) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (halves) {
      const uint2 two = reinterpret_cast<const uint2*>(tile)[2 * lane + half];
      const float2 low = __half22float2(reinterpret_cast<const __half2&>(two.x)),
                   high = __half22float2(reinterpret_cast<const __half2&>(two.y));
      return {low.x, low.y, high.x, high.y};
    } else {
      return reinterpret_cast<const Sums*>(tile)[32 * half + lane];
    }
  }
  // A lane's part of a tile of weights; weight(k, n).
  template <class Weight>
  static __device__ __forceinline__ void pack(uint4* tile, int lane, const Weight& weight) {
    const int g = lane / 4, t = lane % 4;
    if constexpr (halves) {
      const auto two = [&](int k, int n) { return packed(weight(k, n), weight(k + 1, n)); };
      tile[lane] = make_uint4(two(2 * t, g), two(2 * t + 8, g), two(2 * t, g + 8), two(2 * t + 8, g + 8));
    } else {
      const auto one = [&](int k, int n) { return __float_as_uint(rounded<math>(weight(k, n))); };
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const int k = 8 * step + 2 * t;
        tile[32 * step + lane] = make_uint4(one(k, g), one(k + 1, g), one(k, g + 8), one(k + 1, g + 8));
      }
    }
  }
  static __device__ __forceinline__ void multiply(Sums (&c)[2], const uint4* values, const uint4 (&w)[words]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (halves) {
      const uint4 a = values[lane];
      const unsigned rows[4] = {a.x, a.y, a.z, a.w};
      mma_halves(c[0], rows, w[0].x, w[0].y);
      mma_halves(c[1], rows, w[0].z, w[0].w);
    } else {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const Sums a = reinterpret_cast<const Sums*>(values)[32 * step + lane];
        Operand<math, 4> left;
        left.set(0, a.x), left.set(1, a.z), left.set(2, a.y), left.set(3, a.w);
        Operand<math, 2> right[2];
        right[0].set(0, __uint_as_float(w[step].x)), right[0].set(1, __uint_as_float(w[step].y));
        right[1].set(0, __uint_as_float(w[step].z)), right[1].set(1, __uint_as_float(w[step].w));
        multiply_add<math>(c[0], left, right[0]);
        multiply_add<math>(c[1], left, right[1]);
      }
    }
  }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// A block's part of any decoder: a team of blocks, as many as the device has for it, carries NC chains through a
// refinement. Of every layer a block has some units, by tiles of 16, forward and back; only the first hidden layer is
// computed by every block where that costs less than waiting. What a block makes crosses through the device's second
// cache, in the order in which others' products read it. So come weights that have no room in shared memory, each time
// again, while the team waits: a warp needs a fragment of them once a product, so they go straight to registers.
//
// Numbers that cross announce themselves: whoever wants them reads until they are no longer `unwritten`. They have two
// places in turn, and in every evaluation their writer clears the other one before the meeting at its end, by which
// time all have read what was there.
template <class Numbers, int NC_>
class TeamDecoder {
 public:
  static constexpr int NC = NC_, block_warps = warps, most_dims = 0, groups = 1;
  static constexpr bool keeps_first = false;

  __device__ TeamDecoder(const Space& space, const TrajectorySpec& spec, char* shared, int run, int team, int rank)
      : space_(space),
        spec_(spec),
        plan_(spec.plan.team),
        shared_(shared),
        run_(run),
        rank_(rank),
        first_(team * NC),
        last_(spec.decoder.depth - 1),
        weights_(spec.team_memory + run * plan_.run_size),
        exchange_(spec.team_memory + run * plan_.run_size + plan_.weights_size + team * plan_.team_size),
        meeting_(reinterpret_cast<unsigned*>(exchange_)) {}

  __device__ int rank() const { return rank_; }
  __device__ const ChainPlaces& places() const { return spec_.plan.places; }
  __device__ int point_stride() const { return space_.latent; }
  __device__ void load();
  __device__ __forceinline__ void set_input(int chain, int d, float z) {
    Numbers::set(tile(plan_.input, d / 16, chain / 16), chain % 16, d % 16, z);
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value);
  __device__ double gradient(int chain, int d) const {
    const int lane = 4 * (chain % 8) + d % 8 / 2, size = plan_.tiles[0] * 2 * MT * 32 * 4;
    const float* sums = reinterpret_cast<const float*>(shared_ + plan_.answer) +
                        ((d / 8 * MT + chain / 16) * 32 + lane) * 4 + chain / 8 % 2 * 2 + d % 2;
    float sum = 0;
#pragma unroll
    for (int part = 0; part < answer_parts; ++part) sum += sums[part * size];
    return sum;
  }
  __device__ double log_likelihood_part(int chain, int part) const {
    return part == 0 ? reinterpret_cast<const double*>(shared_ + plan_.value)[chain] : 0;
  }

 private:
  static constexpr int MT = NC / 16, words = Numbers::words;
  static constexpr Math math = Numbers::math;
  static constexpr int ahead = (MT > 2 ? 4 : 8) / words;  // tiles of weights on their way
  static constexpr int answer_parts = TeamPlan::answer_parts;

  // An evaluation is a sequence of products: forward through layers base … last, back through last … 0.
  enum class Kind { activate, compare, slope, answer };
  struct Phase {
    Kind kind;
    int layer;         // whose units are made; answer: 0
    int begin, count;  // own tiles of columns
    int values;        // the tiles that are multiplied: place in shared memory
    int from, tiles;   // others' numbers that come there before: place in the exchange; how many tiles, perhaps 0
    int to;            // where the results go, in the exchange; −1: they stay here
  };
  // What a warp does of it: sums of the tile of 16 columns with tiles [begin, end) of k, as part `part`; for several
  // rounds of so many tiles of columns.
  struct Share {
    int tile, part, begin, end;
    int at, next;      // its first weights, in 16 bytes (in shared memory: −at − 1), and from a round to the next
    int tiles, parts;  // of all warps
  };
  struct Coming {
    uint4 w[ahead][words];
  };

  __device__ uint4* tile(int place, int k, int m) const {
    return reinterpret_cast<uint4*>(shared_ + place) + (k * MT + m) * 32 * words;
  }
  __device__ const Layer& layer(int l) const { return spec_.decoder.layer[l]; }
  __device__ int begin_of(int l) const { return min(rank_ * plan_.slice[l], plan_.tiles[l + 1]); }
  __device__ int count_of(int l) const { return min(plan_.slice[l], plan_.tiles[l + 1] - begin_of(l)); }
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  __device__ bool whole_first() const { return plan_.first != 0; }
  __device__ int base() const { return whole_first() ? 1 : 0; }
  __device__ int phases() const { return 2 * last_ + 2 - base(); }
  __device__ int own_place() const {  // where deltas of layer 0 lie, of own units: its values are needed no longer
    return whole_first() ? plan_.first + 16 * begin_of(0) * MT * 32 * words : plan_.own;
  }
  __device__ Phase* phase(int p) const { return reinterpret_cast<Phase*>(shared_ + plan_.schedule) + p; }
  __device__ Share* share(int p, int warp) const {
    return reinterpret_cast<Share*>(phase(2 * max_layers)) + p * warps + warp;
  }
  __device__ Phase made_phase(int p) const;
  __device__ Share made_share(int p, int warp) const;

  // Packed weights: nobody writes them while they are read, since all threads waited for who packed them.
  static __device__ __forceinline__ void bring(Coming& c, const uint4* from, int count) {
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (i < count) bring(c.w[i], from + i * words * 32);
  }
  static __device__ __forceinline__ void bring(uint4 (&w)[words], const uint4* from) {
#pragma unroll
    for (int i = 0; i < words; ++i)
      asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(w[i].x), "=r"(w[i].y), "=r"(w[i].z), "=r"(w[i].w)
                   : "l"(from + 32 * i));
  }
  __device__ __forceinline__ void expect(Coming& c, int p) const {
    const Share mine = *share(p, warp_);
    if (mine.at >= 0 && mine.tile < phase(p)->count) bring(c, weights_ + mine.at + lane_, mine.end - mine.begin);
  }
  template <bool records>
  __device__ __forceinline__ void product(int p, const Phase& ph, Coming& coming, bool wants_value,
                                          const double* value);
  template <bool records>
  __device__ __forceinline__ void use(const Phase& ph, int own, int m, int half, const Sums& c, bool wants_value,
                                      const double* value);
  __device__ __forceinline__ void fetch(const Phase& ph) const;
  __device__ void clear() const;
  __device__ void meet();

  __device__ __forceinline__ float2 bias_at(int l, int unit) const {
    return *reinterpret_cast<const float2*>(shared_ + plan_.bias[l] + 4 * unit);
  }
  template <class F>
  __device__ __forceinline__ Sums by_activation(F f) const {
    return with_activation<Numbers::are_halves>(spec_.decoder.activation, f);
  }
  template <class F>
  __device__ __forceinline__ Sums by_density(F f) const {
    return with_density<Numbers::are_halves>(spec_.density, f);
  }
  __device__ __forceinline__ Sums activated(const Sums& a) const {
    return by_activation([&](auto f) -> Sums {
      return {activate<math>(f, a.x), activate<math>(f, a.y), activate<math>(f, a.z), activate<math>(f, a.w)};
    });
  }
  __device__ __forceinline__ Sums sloped(const Sums& c, const Sums& h) const {
    return by_activation([&](auto f) -> Sums {
      return {c.x * slope<math>(f, h.x), c.y * slope<math>(f, h.y), c.z * slope<math>(f, h.z),
              c.w * slope<math>(f, h.w)};
    });
  }
  static __device__ __forceinline__ Sums shifted(const Sums& c, const float2& b) {
    return {c.x + b.x, c.y + b.y, c.z + b.x, c.w + b.y};
  }
  __device__ __forceinline__ int unit_of(int n, int half) const { return 16 * n + 8 * half + lane_ % 4 * 2; }
  __device__ __forceinline__ int chain_of(int m) const { return 16 * m + lane_ / 4; }
  // What a lane knows of one half of an own tile: four values or, where it is enough to know whether they are above 0,
  // four bits.
  __device__ __forceinline__ void keep(int l, bool bits, int own, int m, int half, const Sums& h) const {
    const int i = (own * MT + m) * 64 + half * 32 + lane_;
    if (bits)
      reinterpret_cast<unsigned char*>(shared_ + plan_.kept[l])[i] =
          static_cast<unsigned char>((h.x > 0) + 2 * (h.y > 0) + 4 * (h.z > 0) + 8 * (h.w > 0));
    else
      reinterpret_cast<Sums*>(shared_ + plan_.kept[l])[i] = h;
  }
  __device__ __forceinline__ Sums kept(int l, bool bits, int own, int m, int half) const {  // of bits: 0 or 1
    const int i = (own * MT + m) * 64 + half * 32 + lane_;
    if (!bits) return reinterpret_cast<const Sums*>(shared_ + plan_.kept[l])[i];
    const unsigned four = reinterpret_cast<const unsigned char*>(shared_ + plan_.kept[l])[i];
    const auto bit = [&](int b) { return four >> b & 1 ? 1.0f : 0.0f; };
    return {bit(0), bit(1), bit(2), bit(3)};
  }
  __device__ void record(float* const (&arrays)[max_layers], int l, int n, int m, int half, const Sums& c) const;
  __device__ __forceinline__ void expect_first(uint4 (&w)[words]) const;
  template <bool records>
  __device__ __forceinline__ void first_layer(uint4 (&w)[words]);
  __device__ void sum_log_p() const;
  __device__ void collect(bool wants_value);

  const Space& space_;
  const TrajectorySpec& spec_;
  const TeamPlan& plan_;
  char* shared_;
  int run_, rank_, first_, last_;
  const uint4* weights_;
  uint4* exchange_;
  unsigned* meeting_;
  unsigned target_ = 0;
  int parity_ = 0;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, lane_ = static_cast<int>(threadIdx.x) % 32;
};

template <class Numbers, int NC>
__device__ typename TeamDecoder<Numbers, NC>::Phase TeamDecoder<Numbers, NC>::made_phase(int p) const {
  const int forward = last_ - base() + 1;
  if (p < forward) {
    const int l = p + base();
    const bool crosses = l > base();  // what it reads
    return {l == last_ ? Kind::compare : Kind::activate,
            l,
            begin_of(l),
            count_of(l),
            crosses  ? plan_.operand
            : l == 0 ? plan_.input
                     : plan_.first,
            crosses ? plan_.values_at[l - 1] : 0,
            crosses ? plan_.tiles[l] : 0,
            last_ == 0   ? -1
            : l == last_ ? plan_.deltas_at[l]
                         : plan_.values_at[l]};
  }
  const int l = last_ - (p - forward);  // back through it
  if (l == 0) return {Kind::answer, 0, 0, plan_.tiles[0], own_place(), 0, 0, -1};
  return {Kind::slope,        l - 1,
          begin_of(l - 1),    count_of(l - 1),
          plan_.operand,      plan_.deltas_at[l],
          plan_.tiles[l + 1], l == 1 ? -1 : plan_.deltas_at[l - 1]};
}

template <class Numbers, int NC>
__device__ typename TeamDecoder<Numbers, NC>::Share TeamDecoder<Numbers, NC>::made_share(int p, int warp) const {
  const Phase ph = made_phase(p);
  const int product = ph.kind == Kind::answer ? 1 : ph.kind == Kind::slope ? 2 * (ph.layer + 1) + 1 : 2 * ph.layer;
  const TeamMatrix w = plan_.matrix[product];
  const ProductPlan how = plan_.how[product];
  const int part = warp / how.tiles, tile = warp % how.tiles;
  if (part >= how.parts) return {1 << 20, 0, 0, 0, 0, 0, how.tiles, how.parts};
  // back through layer 0 a block sums over its own units; else over all
  const int k = ph.kind == Kind::answer ? count_of(0) : w.k, k0 = ph.kind == Kind::answer ? begin_of(0) : 0;
  const int begin = k * part / how.parts, end = k * (part + 1) / how.parts, kept = plan_.resident[product];
  const int at = ((kept ? tile : ph.begin + tile) * w.k + k0 + begin) * 32 * words;
  return {tile,      part,     begin, end, kept ? -(kept / 16 + at) - 1 : w.at + at, how.tiles * w.k * 32 * words,
          how.tiles, how.parts};
}

template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::load() {
  for (int i = threadIdx.x; i < phases() * warps; i += threads) {
    const int p = i / warps, warp = i % warps;
    if (warp == 0) *phase(p) = made_phase(p);
    *share(p, warp) = made_share(p, warp);
  }
  for (int i = threadIdx.x; i < plan_.tiles[0] * MT * 32 * words; i += threads)
    reinterpret_cast<uint4*>(shared_ + plan_.input)[i] = make_uint4(0, 0, 0, 0);
  for (int product = 0; product < 2 * spec_.decoder.depth; ++product) {  // weights that stay
    if (plan_.resident[product] == 0) continue;
    const TeamMatrix& w = plan_.matrix[product];
    const int made = product / 2 - product % 2;  // the layer whose units the product makes
    const bool whole = product == 0 && whole_first();
    const int begin = whole ? 0 : begin_of(made), count = whole ? w.n : count_of(made);
    const uint4* from = weights_ + w.at + static_cast<std::size_t>(begin) * w.k * 32 * words;
    for (int i = threadIdx.x; i < count * w.k * 32 * words; i += threads)
      reinterpret_cast<uint4*>(shared_ + plan_.resident[product])[i] = __ldcg(from + i);
  }
  const float* parameters = space_.of(space_.parameters, run_);
  for (int l = 0; l <= last_; ++l) {
    const bool whole = l == 0 && whole_first();
    const int from = whole ? 0 : begin_of(l), units = 16 * (whole ? plan_.tiles[1] : count_of(l));
    for (int i = threadIdx.x; i < units; i += threads)
      reinterpret_cast<float*>(shared_ + plan_.bias[l])[i] = bias_of(parameters, layer(l), 16 * from + i, 0.0f);
  }
  const float* x = space_.of(space_.x, run_);
  for (int i = warp_; i < count_of(last_) * MT * 2; i += warps) {
    const int half = i % 2, m = i / 2 % MT, own = i / (2 * MT);
    const int pixel = unit_of(begin_of(last_) + own, half), chain = chain_of(m);
    const auto at = [&](int row, int column) {
      return real(chain + row) && pixel + column < layer(last_).outputs
                 ? x[static_cast<std::size_t>(first_ + chain + row) * space_.ld_pixels + pixel + column]
                 : 0.0f;
    };
    keep(last_, plan_.binary, own, m, half, {at(0, 0), at(0, 1), at(8, 0), at(8, 1)});
  }
  __syncthreads();
}

// What others made → shared memory, when it is there; the last product has ended then.
template <class Numbers, int NC>
__device__ __forceinline__ void TeamDecoder<Numbers, NC>::fetch(const Phase& ph) const {
  constexpr int at_once = 4;
  const uint4* from = exchange_ + parity_ * plan_.exchange_size + ph.from;
  auto* to = reinterpret_cast<uint4*>(shared_ + plan_.operand);
  const int count = ph.tiles * MT * 32 * words;
  const auto read = [&](uint4& v, int i) {
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from + i)
                 : "memory");
  };
  const auto missing = [](const uint4& v) {
    return v.x == unwritten || v.y == unwritten || v.z == unwritten || v.w == unwritten;
  };
  bool synchronized = false;
#pragma unroll 1
  for (int i = threadIdx.x; i < count || !synchronized; i += at_once * threads) {
    uint4 v[at_once];
    if (i < count) {  // first one, else waiting would keep the cache busy
      do read(v[0], i);
      while (missing(v[0]));
    }
#pragma unroll
    for (int j = 1; j < at_once; ++j)
      if (i + j * threads < count) read(v[j], i + j * threads);
#pragma unroll
    for (int j = 1; j < at_once; ++j)
      while (i + j * threads < count && missing(v[j])) read(v[j], i + j * threads);
    if (!synchronized) __syncthreads();
    synchronized = true;
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (i + j * threads < count) to[i + j * threads] = v[j];
  }
  __syncthreads();
}

// Own places for the next evaluation.
template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::clear() const {
  uint4* other = exchange_ + (parity_ ^ 1) * plan_.exchange_size;
  for (int l = base(); l <= last_ && last_ > 0; ++l)
    for (int i = threadIdx.x; i < count_of(l) * MT * 32 * words; i += threads) {
      const int at = begin_of(l) * MT * 32 * words + i;
      const uint4 none = make_uint4(unwritten, unwritten, unwritten, unwritten);
      if (l < last_) __stcg(other + plan_.values_at[l] + at, none);
      if (l > 0) __stcg(other + plan_.deltas_at[l] + at, none);
    }
}

template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::meet() {
  __syncthreads();
  target_ += plan_.blocks;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(meeting_, 1u);
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(meeting_) : "memory");
    while (static_cast<int>(seen - target_) < 0);
  }
  __syncthreads();
}

// The sums of own columns, and what becomes of them; then the next phase's weights are on their way.
template <class Numbers, int NC>
template <bool records>
__device__ __forceinline__ void TeamDecoder<Numbers, NC>::product(int p, const Phase& ph, Coming& coming,
                                                                  bool wants_value, const double* value) {
  const Share mine = *share(p, warp_);
  auto* scratch = reinterpret_cast<Sums*>(shared_ + plan_.scratch);
#pragma unroll 1
  for (int turn = 0, round = 0;; ++turn, round += mine.tiles) {
    const int n = round + mine.tile;
    Sums c[MT][2] = {};
    if (n < ph.count) {
      const uint4* values = tile(ph.values, mine.begin, 0);
      if (mine.at < 0) {
        const uint4* from = reinterpret_cast<const uint4*>(shared_) - (mine.at + 1) + turn * mine.next + lane_;
#pragma unroll 4
        for (int k = mine.begin; k < mine.end; ++k) {
          uint4 w[words];
#pragma unroll
          for (int i = 0; i < words; ++i) w[i] = from[32 * i];
#pragma unroll
          for (int m = 0; m < MT; ++m) Numbers::multiply(c[m], values + m * 32 * words, w);
          values += MT * 32 * words;
          from += 32 * words;
        }
      } else {
        const uint4* from = weights_ + mine.at + static_cast<std::size_t>(turn) * mine.next + lane_;
        if (turn > 0) bring(coming, from, mine.end - mine.begin);
#pragma unroll 1
        for (int k = mine.begin; k < mine.end; k += ahead) {
          from += ahead * words * 32;
#pragma unroll
          for (int i = 0; i < ahead; ++i) {
            if (k + i >= mine.end) break;
#pragma unroll
            for (int m = 0; m < MT; ++m) Numbers::multiply(c[m], values + m * 32 * words, coming.w[i]);
            values += MT * 32 * words;
            if (k + i + ahead < mine.end) bring(coming.w[i], from + i * words * 32);
          }
        }
      }
    }
    const bool ends = round + mine.tiles >= ph.count;
    if (ends && p + 1 < phases()) expect(coming, p + 1);
    if (ph.values == plan_.scratch) __syncthreads();  // the sums take their place
    const int size = mine.tiles * MT * 64, items = min(mine.tiles, ph.count - round) * MT * 2;
    if (n < ph.count) {
      Sums* to = scratch + mine.part * size + mine.tile * MT * 64 + lane_;
#pragma unroll
      for (int m = 0; m < MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) to[(2 * m + half) * 32] = c[m][half];
    }
    __syncthreads();
#pragma unroll 1
    for (int i = warp_; i < items; i += warps) {
      Sums sum = {};
#pragma unroll 8
      for (int part = 0; part < mine.parts; ++part) sum = sum + scratch[part * size + i * 32 + lane_];
      use<records>(ph, round + i / (2 * MT), i / 2 % MT, i % 2, sum, wants_value, value);
    }
    if (ends) break;
    __syncthreads();
  }
}

template <class Numbers, int NC>
template <bool records>
__device__ __forceinline__ void TeamDecoder<Numbers, NC>::use(const Phase& ph, int own, int m, int half, const Sums& c,
                                                              bool wants_value, const double* value) {
  const int n = ph.begin + own;
  Sums result;
  if (ph.kind == Kind::answer) {
    auto* sums = reinterpret_cast<Sums*>(exchange_ + plan_.answers) +
                 (parity_ * plan_.blocks + rank_) * static_cast<std::size_t>(plan_.tiles[0] * 2 * MT * 32);
    __stcg(sums + ((2 * n + half) * MT + m) * 32 + lane_, c);
    return;
  }
  if (ph.kind == Kind::slope) {
    const Sums h = ph.layer == 0 && whole_first() ? Numbers::load(tile(plan_.first, n, m), half)
                                                  : kept(ph.layer, Numbers::are_halves, own, m, half);
    result = sloped(c, h);
    if constexpr (records) record(spec_.tape.delta, ph.layer, n, m, half, result);
  } else if (ph.kind == Kind::activate) {
    result = activated(shifted(c, bias_at(ph.layer, unit_of(own, half))));
    keep(ph.layer, Numbers::are_halves, own, m, half, result);
    if constexpr (records) record(spec_.tape.value, ph.layer, n, m, half, result);
  } else {
    const int pixel = unit_of(n, half), chain = chain_of(m);
    const Sums x = kept(last_, plan_.binary, own, m, half), a = shifted(c, bias_at(last_, unit_of(own, half)));
    result = by_density([&](auto f) -> Sums {
      return {residual<math>(f, a.x, x.x), residual<math>(f, a.y, x.y), residual<math>(f, a.z, x.z),
              residual<math>(f, a.w, x.w)};
    });
    if constexpr (records) {
      if (value[chain] == -infinity) result.x = result.y = 0;
      if (value[chain + 8] == -infinity) result.z = result.w = 0;
      record(spec_.tape.delta, last_, n, m, half, result);
    }
    if (wants_value) {  // sums of log p of 8 pixels
      const Sums log_p = by_density([&](auto f) -> Sums {
        return {log_probability<math>(f, a.x, x.x), log_probability<math>(f, a.y, x.y),
                log_probability<math>(f, a.z, x.z), log_probability<math>(f, a.w, x.w)};
      });
      const bool one = pixel < layer(last_).outputs, two = pixel + 1 < layer(last_).outputs;
      float low = (one ? log_p.x : 0.0f) + (two ? log_p.y : 0.0f);
      float high = (one ? log_p.z : 0.0f) + (two ? log_p.w : 0.0f);
#pragma unroll
      for (int offset = 1; offset < 4; offset *= 2) {
        low += __shfl_xor_sync(0xFFFFFFFFu, low, offset);
        high += __shfl_xor_sync(0xFFFFFFFFu, high, offset);
      }
      if (lane_ % 4 == 0) {
        float* sums = reinterpret_cast<float*>(shared_ + plan_.log_p) + (2 * own + half) * NC + chain;
        sums[0] = low;
        sums[8] = high;
      }
    }
  }
  if (ph.to < 0)
    Numbers::store(tile(own_place(), own, m), half, result);
  else
    Numbers::publish(exchange_ + parity_ * plan_.exchange_size + ph.to + (n * MT + m) * 32 * words, half, result);
}

// A lane's numbers of one half of a tile → the tape; what pads a row is zero.
template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::record(float* const (&arrays)[max_layers], int l, int n, int m, int half,
                                                 const Sums& c) const {
  const int unit = unit_of(n, half), chain = chain_of(m);
  if (unit >= layer(l).outputs) return;
  const bool both = unit + 1 < layer(l).outputs;
  float* to = arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * layer(l).ld + unit;
  if (real(chain)) *reinterpret_cast<float2*>(to) = make_float2(c.x, both ? c.y : 0.0f);
  if (real(chain + 8))
    *reinterpret_cast<float2*>(to + static_cast<std::size_t>(8) * layer(l).ld) = make_float2(c.z, both ? c.w : 0.0f);
}

// z → values of the first hidden layer, all of them; a warp has every 16th tile. Tiles of weights come one ahead: the
// first has been expected.
template <class Numbers, int NC>
__device__ __forceinline__ void TeamDecoder<Numbers, NC>::expect_first(uint4 (&w)[words]) const {
  const TeamMatrix& matrix = plan_.matrix[0];
  if (whole_first() && warp_ < matrix.n && plan_.resident[0] == 0)
    bring(w, weights_ + warp_ * matrix.k * 32 * words + lane_);
}
template <class Numbers, int NC>
template <bool records>
__device__ __forceinline__ void TeamDecoder<Numbers, NC>::first_layer(uint4 (&w)[words]) {
  const int tiles = plan_.matrix[0].n, k_tiles = plan_.matrix[0].k, begin = begin_of(0), end = begin + count_of(0);
  const uint4* from = weights_ + warp_ * k_tiles * 32 * words + lane_;
  const auto* kept = reinterpret_cast<const uint4*>(shared_ + plan_.resident[0]) + warp_ * k_tiles * 32 * words + lane_;
#pragma unroll 1
  for (int n = warp_; n < tiles; n += warps) {
    Sums c[MT][2] = {};
#pragma unroll 1
    for (int k = 0; k < k_tiles; ++k) {
      const uint4* next = from + (k + 1 < k_tiles ? (k + 1) : warps * k_tiles) * 32 * words;
      uint4 coming[words] = {};
      if (plan_.resident[0] != 0)
#pragma unroll
        for (int i = 0; i < words; ++i) w[i] = kept[(k * words + i) * 32];
      else if (k + 1 < k_tiles || n + warps < tiles)
        bring(coming, next);
#pragma unroll
      for (int m = 0; m < MT; ++m) Numbers::multiply(c[m], tile(plan_.input, k, m), w);
#pragma unroll
      for (int i = 0; i < words; ++i) w[i] = coming[i];
    }
    from += warps * k_tiles * 32 * words;
    kept += warps * k_tiles * 32 * words;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 bias = bias_at(0, unit_of(n, half));
#pragma unroll
      for (int m = 0; m < MT; ++m) {
        const Sums h = activated(shifted(c[m][half], bias));
        Numbers::store(tile(plan_.first, n, m), half, h);
        if constexpr (records)
          if (n >= begin && n < end) record(spec_.tape.value, 0, n, m, half, h);
      }
    }
  }
}

template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::sum_log_p() const {
  if (threadIdx.x >= NC) return;
  const float* log_p = reinterpret_cast<const float*>(shared_ + plan_.log_p) + threadIdx.x;
  double sum = 0;
#pragma unroll 4
  for (int i = 0; i < 2 * count_of(last_); ++i) sum += log_p[i * NC];
  auto* values = reinterpret_cast<double*>(exchange_ + plan_.values) + (parity_ * plan_.blocks + rank_) * NC;
  __stcg(values + threadIdx.x, sum);
}

// All blocks' parts of ∇_z log p(x | z) and, where wanted, of log p(x | z).
template <class Numbers, int NC>
__device__ void TeamDecoder<Numbers, NC>::collect(bool wants_value) {
  const int size = plan_.tiles[0] * 2 * MT * 32, blocks = plan_.blocks;
  const auto* sums =
      reinterpret_cast<const Sums*>(exchange_ + plan_.answers) + parity_ * static_cast<std::size_t>(blocks * size);
  const auto* values = reinterpret_cast<const double*>(exchange_ + plan_.values) + parity_ * blocks * NC;
#pragma unroll 1
  for (int i = threadIdx.x; i < answer_parts * size; i += threads) {
    const int part = i / size, item = i - part * size;
    Sums sum = {};
#pragma unroll 8
    for (int rank = part; rank < blocks; rank += answer_parts)
      sum = sum + __ldcg(sums + static_cast<std::size_t>(rank) * size + item);
    reinterpret_cast<Sums*>(shared_ + plan_.answer)[i] = sum;
  }
  if (const int chain = threads - 1 - static_cast<int>(threadIdx.x); wants_value && chain < NC) {
    double sum = 0;
#pragma unroll 8
    for (int rank = 0; rank < blocks; ++rank) sum += __ldcg(values + rank * NC + chain);
    reinterpret_cast<double*>(shared_ + plan_.value)[chain] = sum;
  }
}

template <class Numbers, int NC>
template <bool records>
__device__ void TeamDecoder<Numbers, NC>::evaluate(bool wants_value, const double* value) {
  Coming coming;
  uint4 first[words];
  expect_first(first);
  expect(coming, 0);
  if (whole_first()) first_layer<records>(first);
  __syncthreads();
  const int count = records ? phases() - 1 : phases();
#pragma unroll 1
  for (int p = 0; p < count; ++p) {
    const Phase ph = *phase(p);
    if (ph.tiles > 0)
      fetch(ph);
    else if (p > 0)
      __syncthreads();  // own deltas are there
    product<records>(p, ph, coming, wants_value, value);
  }
  if constexpr (!records) {
    if (wants_value) sum_log_p();
    clear();
    meet();
    collect(wants_value);
    __syncthreads();
  }
  parity_ ^= 1;
}

#endif

}  // namespace hone::cuda
