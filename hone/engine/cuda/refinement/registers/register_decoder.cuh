#pragma once

#include "hone/engine/cuda/refinement/refinement.cuh"
#include "hone/engine/cuda/refinement/registers/register_weights.cuh"

namespace hone::cuda {

enum RegisterBox { second_box, sums_box, delta_box, gradient_box, box_count = gradient_box + 2 };  // two gradients

// Where a block keeps what is not in registers. Activations and deltas lie as fragments, two words of two halves per
// lane, tile after tile for 8 chains, then for the next 8: a product reads its tile at once, without conflicts of
// banks.
template <int NT>
struct RegisterPlaces : Places {
  using Shape = TwoHiddenLayers;
  static constexpr int NC = 8 * NT, dims = 16;
  static constexpr bool keeps_first = NT == 1;
  int input = take<uint2>(32 * NT);
  int first = take<uint2>(32 * NT * Shape::first_tiles);
  int second = take<uint2>(32 * NT * Shape::second_tiles);
  int mask = take<uint2>(32 * NT * Shape::owned_tiles);
  int residual = take<uint2>(32 * NT * Shape::pixel_tiles);
  int delta = take<uint2>(32 * NT * Shape::owned_tiles);
  int sums = take<float4>(32 * NT * Shape::blocks * Shape::owned_tiles);
  int parts = take<float4>(32 * NT * Shape::first_tiles);
  int gradients = take<float>(2 * Shape::blocks * NC * dims);
  int log_likelihoods = take<double>(2 * Shape::blocks * NC);
  int partial_values = take<double>(Shape::pixel_tiles * NC);
  int first_sums = take<float4>(32 * NT * Shape::blocks * Shape::owned_tiles);
  int boxes = take<unsigned long long>(box_count);
  int fragments = take<uint4>(threads * Shape::in_shared);
  ChainPlaces<NC, dims, keeps_first> chains{bytes()};

  __host__ __device__ constexpr RegisterPlaces() {}
};

__device__ __forceinline__ float2 unpacked(unsigned word) { return __half22float2(*reinterpret_cast<__half2*>(&word)); }

// Sums of a warp's product, lane = 4 g + t: (unit 2 g, chain 2 t), (2 g, 2 t + 1), (2 g + 1, 2 t), (2 g + 1, 2 t + 1);
// as halves: of unit 2 g, of unit 2 g + 1.
__device__ __forceinline__ uint2 packed(const Sums& c) { return {packed(c.x, c.y), packed(c.z, c.w)}; }
__device__ __forceinline__ Sums unpacked(uint2 words) {
  const float2 low = unpacked(words.x), high = unpacked(words.y);
  return {low.x, low.y, high.x, high.y};
}
__device__ __forceinline__ Sums for_all_chains(float2 bias) { return {bias.x, bias.x, bias.y, bias.y}; }
__device__ __forceinline__ Sums where_positive(uint2 values, const Sums& a) {
  const Sums h = unpacked(values);
  return {h.x > 0 ? a.x : 0.0f, h.y > 0 ? a.y : 0.0f, h.z > 0 ? a.z : 0.0f, h.w > 0 ? a.w : 0.0f};
}

// Results of one product as what the next reads: (g; 2 t, 2 t + 1) → (2 t, 2 t + 1; g), for even and for odd units. So
// k is there in the order of `by_parity`.
__device__ __forceinline__ uint2 transposed(uint2 words) { return {transposed(words.x), transposed(words.y)}; }

// Where a tile's word of a pair of units and a chain lies as b, k in order: two words of two halves per lane, tile
// after tile.
__device__ __forceinline__ int tile_word(int tile, int pair, int chain) {
  return (32 * tile + 4 * chain + pair % 4) * 2 + pair / 4;
}

// A block's part of a Bernoulli decoder with two hidden layers of ReLUs. The weights of the last layer and, forward, of
// the second lie in registers, as fragments: their products read nothing but activations. The other fragments, which
// are few, lie in shared memory. A product over all of k is one warp's; but the last one, back to z, follows the one
// before it in the same warp, and its sums are added up.
template <int NT>
class RegisterDecoder : public ChainBlock {
 public:
  using Shape = TwoHiddenLayers;
  static constexpr int NC = 8 * NT, block_warps = warps, most_dims = RegisterPlaces<NT>::dims, groups = 1;
  static constexpr bool keeps_first = RegisterPlaces<NT>::keeps_first;

  __device__ RegisterDecoder(const Space& space, const RefinementSpec& spec, char* shared, int run, int first)
      : ChainBlock(space, spec, shared, run, first),
        boxes_(reinterpret_cast<Mailbox*>(shared + at().boxes)),
        rank_(block_rank()) {}

  __device__ int rank() const { return rank_; }
  static __device__ constexpr auto places() { return at().chains; }
  __device__ void set_up() {  // of shared memory
    auto* all = shared<float4>(0);
    static_assert(at().boxes + box_count * 8 <= at().fragments);
#pragma unroll 1
    for (int i = threadIdx.x; i < at().boxes / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
    boxes_.set_up();
  }
  // As `load` uses them.
  __device__ __forceinline__ Fragment* resident() const { return shared<Fragment>(at().fragments); }
  __device__ const Fragment* packed_weights() const {
    return reinterpret_cast<const Fragment*>(space_.of(space_.packed, run_)) + rank_ * Shape::fragments * threads;
  }
  __device__ Fragment& own(int i) { return own_[i]; }
  __device__ void begin_vectors() const {}
  __device__ void take_vectors() {  // biases and data of what a lane computes
    const int to[2] = {pixel(16 * warp_ + 2 * g()), pixel(16 * warp_ + 2 * g() + 1)};
    last_bias_ = biases(last, to[0], to[1]);
    const bool second = warp_ >= Shape::second_warp;
    const int unit = 16 * (second ? owned(warp_ - Shape::second_warp) : warp_) + 2 * g();
    hidden_bias_ = biases(second ? 1 : 0, unit, unit + 1);
    const float* x = space_.of(space_.x, run_);
    for (int e = 0; e < 2; ++e)
      for (int n = 0; n < NT; ++n)
        for (int other = 0; other < 2; ++other) {
          const int chain = 8 * n + 2 * t() + other;
          x_[n][2 * other + e] =
              to[e] >= 0 && real(chain) ? x[static_cast<std::size_t>(first_ + chain) * space_.ld_pixels + to[e]] : 0.0f;
        }
  }
  __device__ __forceinline__ void set_input(int chain, int d, float z) {
    const int word = tile_word(chain / 8 + d / 16, d / 2 % 8, chain % 8);
    shared<unsigned short>(at().input)[2 * word + d % 2] = static_cast<unsigned short>(packed(z, z));
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value) {
    forget_addresses();
    residual_word_ = here_only(tile_word(warp_, g(), 2 * t()));  // before the time when everything waits for it
    forward_hidden<records>();
    forget_addresses();
    compare<records>(wants_value, value);
    forget_addresses();
    const bool wants_gradient = !records || wants_value;
    backward_hidden<records>(wants_gradient);
    forget_addresses();
    if (wants_gradient) share_gradient(wants_value);
  }
  __device__ __forceinline__ double gradient(int chain, int d) const {
    constexpr int stride = NC * most_dims;
    const float* gradients = shared<float>(at().gradients) + (parity_ ^ 1) * blocks * stride;
    float sums[2] = {};  // at a time
    for (int rank = 0; rank < blocks; ++rank) sums[rank % 2] += gradients[rank * stride + chain * most_dims + d];
    return sums[0] + sums[1];
  }
  __device__ __forceinline__ double log_likelihood_part(int chain, int part) const {
    const double* parts = shared<double>(at().log_likelihoods);
    return part < blocks ? parts[((parity_ ^ 1) * blocks + part) * NC + chain] : 0;
  }

 private:
  static constexpr int blocks = Shape::blocks, first_tiles = Shape::first_tiles, second_tiles = Shape::second_tiles,
                       owned_tiles = Shape::owned_tiles, pixel_tiles = Shape::pixel_tiles, last = 2;

  static __host__ __device__ constexpr RegisterPlaces<NT> at() { return {}; }
  // do_one(n, m) for each tile of chains and each that the block may own of the second layer: a warp each.
  template <class DoOne>
  __device__ __forceinline__ void by_owned_tiles(DoOne do_one) const {
    static_assert(NT * owned_tiles <= warps);
    if (warp_ < NT * owned_tiles) do_one(NT == 1 ? 0 : warp_ / owned_tiles, NT == 1 ? warp_ : warp_ % owned_tiles);
  }
  __device__ __forceinline__ uint2& words(int place, int tile) const { return shared<uint2>(place)[32 * tile + lane_]; }
  __device__ __forceinline__ Sums& sums_at(int place, int tile) const { return shared<Sums>(place)[32 * tile + lane_]; }
  // Σ of tiles first, first + stride …: two sums at a time
  template <int count, int stride>
  __device__ __forceinline__ Sums sum_of_tiles(int place, int first) const {
    Sums c[2] = {sums_at(place, first), sums_at(place, first + stride)};
    for (int i = 2; i < count; ++i) c[i % 2] = c[i % 2] + sums_at(place, first + i * stride);
    return c[0] + c[1];
  }
  __device__ __forceinline__ Fragment& small(int i) const { return resident()[i * threads + 32 * warp_ + lane_]; }
  // What depends on the thread is computed where it is used: weights need the registers.
  __device__ __forceinline__ void forget_addresses() {
    warp_ = here_only(warp_);
    lane_ = here_only(lane_);
  }
  __device__ int pixel(int local) const { return Slice(spec_.decoder.layer[last].outputs, blocks, rank_).unit(local); }
  __device__ int owned(int m) const { return blocks * m + rank_; }  // a tile of the second layer
  __device__ void record(float* const (&arrays)[max_layers], int l, int n, int tile, const Sums& c) const {
    const int unit = 16 * tile + 2 * g(), chain = 8 * n + 2 * t();
    const Layer& layer = spec_.decoder.layer[l];
    float* to = recorded(arrays, l, chain) + unit;
    const auto put = [&](int other, int e, float number) {
      if (real(chain + other) && unit + e < layer.outputs) to[other * layer.ld + e] = number;
    };
    put(0, 0, c.x);
    put(0, 1, c.z);
    put(1, 0, c.y);
    put(1, 1, c.w);
  }
  __device__ float2 biases(int l, int unit, int next) const {
    const Layer& layer = spec_.decoder.layer[l];
    const float* all = space_.parameters + run_ * space_.stride + layer.bias;
    const auto bias = [&](int i) { return i >= 0 && i < layer.outputs ? all[i] : 0.0f; };
    return {bias(unit), bias(next)};
  }
  template <bool records>
  __device__ void forward_hidden() {
    if (warp_ < first_tiles) {
      for (int n = 0; n < NT; ++n) {
        Sums c = for_all_chains(hidden_bias_);
        multiply_add(c, small(Shape::first_forward), words(at().input, n));
        first_value_[n] = packed(rectified(c));
        words(at().first, n * first_tiles + warp_) = transposed(first_value_[n]);
        if constexpr (records)
          if (warp_ % blocks == rank_) record(spec_.tape.value, 0, n, warp_, unpacked(first_value_[n]));
      }
    }
    __syncthreads();
    const int m = warp_ - Shape::second_warp, tile = owned(m);
    if (m >= 0 && m < owned_tiles && tile < second_tiles) {  // → all blocks
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const Sums c = sum_of_products<first_tiles, NT>(
            for_all_chains(hidden_bias_), [&](int s) -> Fragment& { return own_[s]; },
            [&](int s) { return words(at().first, n * first_tiles + s); });
        const uint2 value = packed(rectified(c)), b = transposed(value);
        words(at().mask, n * owned_tiles + m) = value;
        const int place = at().second + ((n * second_tiles + tile) * 32 + lane_) * 8;
        for (int to = 0; to < blocks; ++to) {
          const unsigned remote = remote_address(shared_, to);
          send(remote + place, remote + at().boxes + 8 * second_box, b);
        }
        if constexpr (records) record(spec_.tape.value, 1, n, tile, unpacked(value));
      }
    }
    boxes_.receive(second_box, NT * second_tiles * 256);
  }
  template <bool records>
  __device__ void compare(bool wants_value, const double* value) {
    if (warp_ < pixel_tiles) {
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const Sums c = sum_of_products<second_tiles, NT>(
            for_all_chains(last_bias_), [&](int i) -> Fragment& { return own_[i]; },
            [&](int i) { return words(at().second, n * second_tiles + i); });
        double sums[2] = {finish<records>(n, 0, c.x, c.z, wants_value, value),
                          finish<records>(n, 1, c.y, c.w, wants_value, value)};
        if (!wants_value) continue;
        double* partial = shared<double>(at().partial_values) + warp_ * NC;
        for (int other = 0; other < 2; ++other) {
          for (int offset = 4; offset < 32; offset *= 2)
            sums[other] += __shfl_xor_sync(0xFFFFFFFFu, sums[other], offset);
          if (g() == 0) partial[8 * n + 2 * t() + other] = sums[other];
        }
      }
    }
    __syncthreads();
  }
  // A pair of pixels of chain 2 t + other: the residual and, where wanted, log p.
  template <bool records>
  __device__ __forceinline__ double finish(int n, int other, float low, float high, bool wants_value,
                                           const double* value) const {
    const int chain = 2 * t() + other;
    const float a[2] = {low, high};
    float r[2];
    double sum = 0;
    for (int e = 0; e < 2; ++e) {
      const float x = x_[n][2 * other + e];
      r[e] = residual<Math::tf32>(Density::bernoulli, a[e], x);
      const int to = pixel(16 * warp_ + 2 * g() + e);
      if (wants_value && to >= 0) sum += log_probability<Math::tf32>(Density::bernoulli, a[e], x);
      if constexpr (records) {
        if (value && value[8 * n + chain] == -infinity) r[e] = 0;
        if (to >= 0 && real(8 * n + chain)) recorded(spec_.tape.delta, last, 8 * n + chain)[to] = r[e];
      }
    }
    shared<unsigned>(at().residual)[residual_word_ + tile_word(n * pixel_tiles, 0, other)] = packed(r[0], r[1]);
    return sum;
  }
  // Pixels → the second layer's sums, to their owners → the first layer's deltas → parts of ∇_z.
  template <bool records>
  __device__ void backward_hidden(bool wants_gradient) {
    if (const int first = warp_ - Shape::back_warp; first >= 0 && first < Shape::back_warps) {
      for (int n = 0; n < NT; ++n) {
        Sums c[Shape::back_tiles];
        for (int i = 0; i < Shape::back_tiles; ++i)
          c[i] = sum_of_products<pixel_tiles, NT>(
              {}, [&](int s) -> Fragment& { return own_[i * pixel_tiles + s]; },
              [&](int s) { return words(at().residual, n * pixel_tiles + s); });
        for (int i = 0; i < Shape::back_tiles; ++i) {
          const int tile = first + i * Shape::back_warps, place = (rank_ * NT + n) * owned_tiles + tile / blocks;
          const unsigned remote = remote_address(shared_, tile % blocks);
          if (tile < second_tiles)
            send(remote + at().sums + (place * 32 + lane_) * 16, remote + at().boxes + 8 * sums_box, c[i]);
        }
      }
    }
    Fragment to_first[owned_tiles], to_z;  // in time
    if (warp_ < first_tiles) {
      for (int m = 0; m < owned_tiles; ++m) to_first[m] = small(Shape::second_back + m);
      to_z = small(Shape::first_back);
    }
    boxes_.receive(sums_box, blocks * NT * 512 * ((second_tiles - rank_ + blocks - 1) / blocks));
    gather_deltas<records>();
    __syncthreads();
    if (warp_ < first_tiles) {
      for (int n = 0; n < NT; ++n) {
        const Sums c =
            where_positive(first_value_[n], sum_of_products<owned_tiles, NT>(
                                                {}, [&](int m) -> Fragment& { return to_first[m]; },
                                                [&](int m) { return words(at().delta, n * owned_tiles + m); }));
        if constexpr (records) send_first_delta(n, c);
        if (wants_gradient) {
          Sums part = {};
          multiply_add(part, to_z, transposed(packed(c)));
          sums_at(at().parts, n * first_tiles + warp_) = part;
        }
      }
    }
    if constexpr (records) record_first_delta();
  }
  template <bool records>
  __device__ void gather_deltas() const {  // of the second layer's tiles that this block owns
    by_owned_tiles([&](int n, int m) {
      if (owned(m) >= second_tiles) return;
      const Sums sum = sum_of_tiles<blocks, NT * owned_tiles>(at().sums, n * owned_tiles + m);
      const Sums delta = where_positive(words(at().mask, n * owned_tiles + m), sum);
      words(at().delta, n * owned_tiles + m) = transposed(packed(delta));
      if constexpr (records) record(spec_.tape.delta, 1, n, owned(m), delta);
    });
  }
  // The first layer's deltas are sums over the cluster: tile m's are made by block m mod blocks.
  __device__ void send_first_delta(int n, const Sums& c) const {
    const int place = (rank_ * NT + n) * owned_tiles + warp_ / blocks;
    const unsigned remote = remote_address(shared_, warp_ % blocks);
    send(remote + at().first_sums + (place * 32 + lane_) * 16, remote + at().boxes + 8 * delta_box, c);
  }
  __device__ void record_first_delta() {
    static_assert(first_tiles <= blocks * owned_tiles);
    boxes_.receive(delta_box, blocks * NT * 512 * ((first_tiles - rank_ + blocks - 1) / blocks));
    by_owned_tiles([&](int n, int m) {
      if (owned(m) >= first_tiles) return;
      const Sums sum = sum_of_tiles<blocks, NT * owned_tiles>(at().first_sums, n * owned_tiles + m);
      record(spec_.tape.delta, 0, n, owned(m), sum);
    });
  }
  // This block's part of ∇_z log p(x | z) and, where wanted, of log p(x | z) → all blocks.
  __device__ void share_gradient(bool wants_value) {
    const int n = warp_;
    GradientPlaces places;
    if (n < NT) places = gradient_places(n);  // in time
    __syncthreads();
    if (n < NT) send_gradient(places, sum_of_tiles<first_tiles, 1>(at().parts, n * first_tiles));
    if (wants_value) {
      const int to = warps - 1 - warp_;  // one block per warp
      if (to < blocks && lane_ < NC) {
        const double* partial = shared<double>(at().partial_values) + lane_;
        double sum = 0;
        for (int tile = 0; tile < pixel_tiles; ++tile) sum += partial[tile * NC];
        send(shared<double>(at().log_likelihoods) + (parity_ * blocks + rank_) * NC + lane_,
             boxes_[gradient_box + parity_], to, sum);
      }
    }
    boxes_.receive(gradient_box + parity_, blocks * NC * ((space_.latent + 3) / 4 * 16 + (wants_value ? 8 : 0)));
    parity_ ^= 1;
  }
  struct GradientPlaces {
    bool any;
    int at, box;
  };
  // Where the lane sends its part of ∇_z log p(x | z): (chain, D) of every block. Lanes four apart exchange, so that a
  // lane sends four dimensions of one chain.
  __device__ __forceinline__ GradientPlaces gradient_places(int n) const {
    const int odd = g() % 2, chain = 8 * n + 2 * t() + odd, d = 2 * (g() - odd);
    return {d < space_.latent,
            here_only(at().gradients + (((parity_ * blocks + rank_) * NC + chain) * most_dims + d) * 4),
            here_only(at().boxes + 8 * (gradient_box + parity_))};
  }
  __device__ __forceinline__ void send_gradient(const GradientPlaces& places, const Sums& c) const {
    const bool odd = g() % 2;
    const float low = __shfl_xor_sync(0xFFFFFFFFu, odd ? c.x : c.y, 4),
                high = __shfl_xor_sync(0xFFFFFFFFu, odd ? c.z : c.w, 4);
    const Sums four = odd ? Sums{low, high, c.y, c.w} : Sums{c.x, c.z, low, high};
    if (!places.any) return;
    for (int to = 0; to < blocks; ++to) {
      const unsigned remote = remote_address(shared_, to);
      send(remote + places.at, remote + places.box, four);
    }
  }

  Mailboxes<box_count> boxes_;
  int rank_, parity_ = 0;
  Fragment own_[Shape::own];
  float2 hidden_bias_, last_bias_;  // of the warp's tile of the first layer, or of the second; of pixels
  float x_[NT][4];
  uint2 first_value_[NT];  // the warp's tile of the first layer
  int residual_word_ = 0;  // where the lane's first residuals lie
};

}  // namespace hone::cuda
