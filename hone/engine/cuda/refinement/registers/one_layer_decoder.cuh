#pragma once

#include "hone/engine/cuda/refinement/refinement.cuh"
#include "hone/engine/cuda/refinement/registers/register_weights.cuh"

namespace hone::cuda {

// Where a block keeps what is not in registers; z as halves in the order in which the product reads it.
template <int NC>
struct OneLayerPlaces : Places {
  using Shape = NoHiddenLayers;
  static constexpr int dims = 16 * Shape::latent_tiles, pixels = 16 * Shape::pixel_tiles;
  static constexpr bool keeps_first = NC == 1;
  int input = take<unsigned>(NC * dims / 2);
  int vectors = take<float>((1 + NC) * pixels);  // biases, data: on their way to registers
  int sums = take<float>(warps * NC * dims);
  int values = take<double>(warps * NC);
  int fragments = take<uint4>(threads * Shape::in_shared);
  ChainPlaces<NC, dims, keeps_first> chains{bytes()};

  __host__ __device__ constexpr OneLayerPlaces() {}
};

// A Bernoulli decoder without hidden layers, as a whole in each block of a cluster, with one or two chains of the
// block's own. A warp has some tiles of pixels. The product forward has eight columns: chain n is in columns n, n + NC
// … So every lane knows the sums of several tiles for the same chains, and lanes that know the same share the tiles
// out. For the way back the weights lie the wrong way round; but a lane has those of its pixels, multiplies them by the
// residuals in pairs of halves, adds up its few pixels, and a last product, with ones, adds up lanes. What a warp finds
// for all dimensions of z is a part of the sum over all warps.
template <int NC_>
class OneLayerDecoder : public ChainBlock {
 public:
  using Shape = NoHiddenLayers;
  static constexpr int NC = NC_, block_warps = warps, most_dims = OneLayerPlaces<NC>::dims, groups = Shape::blocks;
  static constexpr bool keeps_first = OneLayerPlaces<NC>::keeps_first;

  // `cluster_first`: the first chain of the cluster
  __device__ OneLayerDecoder(const Space& space, const RefinementSpec& spec, char* shared, int run, int cluster_first)
      : ChainBlock(space, spec, shared, run, cluster_first + NC * block_rank()) {}

  static __device__ constexpr int rank() { return 0; }  // no other block has its chains
  static __device__ constexpr auto places() { return at().chains; }

  __device__ void set_up() {
    static_assert(NC * most_dims / 2 <= threads);
    if (threadIdx.x < NC * most_dims / 2) shared<unsigned>(at().input)[threadIdx.x] = 0;
  }
  // As `load` uses them.
  __device__ Fragment* resident() const { return shared<Fragment>(at().fragments); }
  __device__ const Fragment* packed_weights() const {
    return reinterpret_cast<const Fragment*>(space_.of(space_.packed, run_));
  }
  __device__ Fragment& own(int i) { return own_[i]; }
  __device__ void begin_vectors() const {  // padding pixels contribute nothing
    const Layer& layer = spec_.decoder.layer[0];
    const float* bias = space_.of(space_.parameters, run_) + layer.bias;
    const float* x = space_.of(space_.x, run_) + static_cast<std::size_t>(first_) * space_.ld_pixels;
#pragma unroll 1
    for (int i = threadIdx.x; i < at().pixels; i += threads) {
      float* to = shared<float>(at().vectors) + i;
      const bool there = i < layer.outputs;
      there ? copy_async(to, bias + i) : void(*to = never);
#pragma unroll 1
      for (int chain = 0; chain < NC; ++chain) {
        to += at().pixels;
        there&& real(chain) ? copy_async(to, x + chain * space_.ld_pixels + i) : void(*to = 0);
      }
    }
  }
  __device__ void take_vectors() {
    wait_for_copies();
    __syncthreads();
    const auto two = [&](int row) {
      return shared<float2>(at().vectors + row * at().pixels * 4)[8 * lane_tile() + g()];
    };
    bias_ = two(0);
    for (int chain = 0; chain < NC; ++chain) x_[chain] = two(1 + chain);
  }
  __device__ __forceinline__ void set_input(int chain, int d, float z) {  // (chain, t, two words of each tile)
    const int word = (4 * chain + d % 8 / 2) * 2 * latent_tiles + d / 8;
    shared<unsigned short>(at().input)[2 * word + d % 2] = static_cast<unsigned short>(packed(z, z));
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value) {
    warp_ = here_only(warp_);
    lane_ = here_only(lane_);
    const bool has_extra = 16 * tile_of(own_tiles) < spec_.decoder.layer[0].outputs;
    const bool wide = space_.latent > most_dims - 8;  // else the last eight dimensions are not there
    const Fragment* extra = resident() + warp_ / latent_tiles * latent_tiles * 32 + lane_;
    Sums a[slots] = {};
    has_extra ? multiply<true>(a, extra, wide) : multiply<false>(a, extra, wide);
    Sums mine = a[0];
    for (int i = 1; i < slots; ++i) mine = either(t() == i, a[i], mine);
    float sums[2] = {};
    const Pixels r = compare<records>(mine, wants_value, sums, value);
    if (wants_value) add_values(sums);
    if (records && !wants_value) return;
    for (int chain = 0; chain < NC; ++chain) {
      LaneGradients gradients = {};
      const auto residuals = [&](int slot) { return __shfl_sync(0xFFFFFFFFu, r.of[chain], 4 * g() + slot); };
      for (int i = 0; i < own_tiles; ++i) {
        const unsigned both = residuals(i);
        for (int l = 0; l < latent_tiles; ++l)
          add_gradient(gradients[l], own_[latent_tiles * i + l], both, wide || l + 1 < latent_tiles);
      }
      if (has_extra) {
        const unsigned both = residuals(own_tiles);
        __half2 gradient[2] = {};
        add_gradient(gradient, extra[warp_ % latent_tiles * 32], both, true);
        for (int l = 0; l < latent_tiles; ++l)
          for (int j = 0; j < 2; ++j)
            gradients[l][j] = __hadd2(gradients[l][j], warp_ % latent_tiles == l ? gradient[j] : as_half2(0));
      }
      send_gradients(gradients, chain);
    }
    __syncthreads();
  }
  __device__ __forceinline__ double gradient(int chain, int d) const {
    const float* part = shared<float>(at().sums) + chain * most_dims + d;
    float sums[4];  // at a time
    for (int warp = 0; warp < 4; ++warp) sums[warp] = part[warp * NC * most_dims];
    for (int warp = 4; warp < warps; ++warp) sums[warp % 4] += part[warp * NC * most_dims];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  __device__ __forceinline__ double log_likelihood_part(int chain, int part) const {
    return shared<double>(at().values)[part * NC + chain];
  }

 private:
  static constexpr int latent_tiles = Shape::latent_tiles, own_tiles = Shape::own_tiles, slots = own_tiles + 1;
  static_assert(NC <= 2 && slots == 4);  // lanes t = 0 … 3 know the same chains: they share out the tiles' slots

  static __host__ __device__ constexpr OneLayerPlaces<NC> at() { return {}; }

  // A warp's slots are its own tiles and, for four warps each, one of the rest, of which a warp goes back to one tile
  // of dimensions.
  __device__ int tile_of(int slot) const {
    return slot < own_tiles ? warp_ + warps * slot : warps * own_tiles + warp_ / latent_tiles;
  }
  __device__ int lane_tile() const { return tile_of(t()); }

  // The sums of the warp's slots; `with_extra`: it has one of the rest. As one piece, so that products need not wait
  // for each other.
  template <bool with_extra>
  __device__ __forceinline__ void multiply(Sums (&a)[slots], const Fragment* extra, bool wide) const {
    constexpr int last = latent_tiles - 1;
    uint2 z[latent_tiles];
    const uint4* input = shared<uint4>(at().input) + (4 * (g() % NC) + t()) * latent_tiles / 2;
    for (int l = 0; l < latent_tiles; l += 2) {
      const uint4 both = input[l / 2];
      z[l] = {both.x, both.y};
      z[l + 1] = {both.z, both.w};
    }
    for (int l = 0; l < last; ++l) {
      if constexpr (with_extra) multiply_add(a[own_tiles], extra[32 * l], z[l]);
      for (int i = 0; i < own_tiles; ++i) multiply_add(a[i], own_[latent_tiles * i + l], z[l]);
    }
    const auto finish = [&](auto multiply_last) {
      if constexpr (with_extra) multiply_last(a[own_tiles], extra[32 * last]);
      for (int i = 0; i < own_tiles; ++i) multiply_last(a[i], own_[latent_tiles * i + last]);
    };
    if (wide)
      finish([&](Sums& c, const Fragment& w) { multiply_add(c, w, z[last]); });
    else
      finish([&](Sums& c, const Fragment& w) { mma_halves(c, w.a[0], w.a[1], z[last].x); });
  }
  struct Pixels {
    unsigned of[NC];  // residuals of a pair of neighbours, as halves
  };
  // The residuals of the chains and the lane's two pixels; where wanted, log p.
  template <bool records>
  __device__ __forceinline__ Pixels compare(const Sums& a, bool wants_value, float (&sums)[2],
                                            const double* value) const {
    const bool counts = t() < own_tiles || warp_ % latent_tiles == 0;  // no other warp has the same
    Pixels result;
    for (int chain = 0; chain < NC; ++chain) {
      const float2 x = x_[chain];
      const float low = (chain == 0 ? a.x : a.y) + bias_.x, high = (chain == 0 ? a.z : a.w) + bias_.y;
      const float r[2] = {residual<Math::tf32>(Density::bernoulli, low, x.x),
                          residual<Math::tf32>(Density::bernoulli, high, x.y)};
      result.of[chain] = packed(r[0], r[1]);
      if (wants_value && counts)
        sums[chain] += log_probability<Math::tf32>(Density::bernoulli, low, x.x) +
                       log_probability<Math::tf32>(Density::bernoulli, high, x.y);
      if constexpr (records) {
        const Layer& layer = spec_.decoder.layer[0];
        const int pixel = 16 * lane_tile() + 2 * g();
        if (!counts || !real(chain) || pixel >= layer.outputs) continue;
        const bool lost = value && value[chain] == -infinity;
        *reinterpret_cast<float2*>(recorded(spec_.tape.delta, 0, chain) + pixel) =
            lost ? float2{} : make_float2(r[0], r[1]);
      }
    }
    return result;
  }
  // Selects; an address would move the sums out of registers.
  static __device__ __forceinline__ Sums either(bool one, const Sums& a, const Sums& b) {
    const auto pick = [&](float x, float y) {
      float result;
      asm("{\n .reg .pred p;\n setp.ne.s32 p, %3, 0;\n selp.f32 %0, %1, %2, p;\n}"
          : "=f"(result)
          : "f"(x), "f"(y), "r"(static_cast<int>(one)));
      return result;
    };
    if constexpr (NC == 1) return {pick(a.x, b.x), 0, pick(a.z, b.z), 0};
    return {pick(a.x, b.x), pick(a.y, b.y), pick(a.z, b.z), pick(a.w, b.w)};
  }
  __device__ __forceinline__ void add_values(float (&sums)[2]) const {
    for (int chain = 0; chain < NC; ++chain) {
      for (int offset = 1; offset < 32; offset *= 2) sums[chain] += __shfl_xor_sync(0xFFFFFFFFu, sums[chain], offset);
      if (lane_ == 0) shared<double>(at().values)[warp_ * NC + chain] = sums[chain];
    }
  }
  // What a tile's pixels add to the lane's sums over its own: of dimensions 16 l + 8 j + 2 t and the next.
  using LaneGradients = __half2[latent_tiles][2];
  static __device__ __forceinline__ void add_gradient(__half2 (&to)[2], const Fragment& w, unsigned residuals,
                                                      bool whole) {
    const __half2 both = as_half2(residuals), even = __low2half2(both), odd = __high2half2(both);
    to[0] = __hfma2(as_half2(w.a[1]), odd, __hfma2(as_half2(w.a[0]), even, to[0]));
    if (whole) to[1] = __hfma2(as_half2(w.a[3]), odd, __hfma2(as_half2(w.a[2]), even, to[1]));
  }
  static __device__ __forceinline__ __half2 as_half2(unsigned word) { return *reinterpret_cast<__half2*>(&word); }
  // Σ over the lanes of a column: a product with ones in row 2 l + j, so that lane 4 g + t gets dimensions 8 g + 2 t
  // and the next: 2 lane, 2 lane + 1.
  __device__ __forceinline__ void send_gradients(const LaneGradients& gradients, int chain) const {
    Sums c[2] = {};
    for (int l = 0; l < latent_tiles; ++l) {
      constexpr unsigned ones = 0x3C003C00;
      const unsigned row[4] = {g() == 2 * l ? ones : 0, 0, g() == 2 * l + 1 ? ones : 0, 0};
      const auto word = [&](int j) { return transposed(*reinterpret_cast<const unsigned*>(&gradients[l][j])); };
      mma_halves(c[l % 2], row, word(0), word(1));
    }
    reinterpret_cast<float2*>(shared<float>(at().sums) + (warp_ * NC + chain) * most_dims)[lane_] =
        make_float2(c[0].x + c[1].x, c[0].y + c[1].y);
  }

  Fragment own_[Shape::own];  // (slot, tile of dimensions)
  float2 bias_, x_[NC];       // of the lane's two pixels
};

}  // namespace hone::cuda
