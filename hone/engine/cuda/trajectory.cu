#include "hone/engine/cuda/trajectory.cuh"

#include <cooperative_groups.h>

#include <algorithm>

namespace hone::cuda {
namespace {

namespace cg = cooperative_groups;

constexpr int warps = 16, threads = 32 * warps;
constexpr int scratch_floats = 8192;

__host__ __device__ constexpr int steps_of(int k) { return (k + 7) / 8; }
__host__ __device__ constexpr int tiles_of(int rows) { return (rows + 15) / 16; }

// A warp's share of a split product.
struct Share {
  int tile, begin, end;  // steps of k; none where begin = end
};

// A stride of at least `least` that is 4 more than a multiple of 8 (fragments of single words), or 8 more than one of
// 32 (fragments of pairs): a warp's fragment touches every bank once.
constexpr int odd_stride(int least) { return round_up(least + 4, 8) - 4; }
constexpr int pair_stride(int least) { return round_up(least > 8 ? least - 8 : 0, 32) + 8; }

class Layouter {
 public:
  constexpr int take(int floats) {
    const int at = size_;
    size_ += round_up(floats, 4);
    return at;
  }
  constexpr int size() const { return size_; }

 private:
  int size_ = 0;
};

// Layers' widths: z, hidden ones, pixels.
struct Shape {
  int depth;
  int width[trajectory_layers + 1];
  constexpr bool operator==(const Shape&) const = default;
};

constexpr TrajectoryPlan layout(const Shape& shape, int chains, int cluster) {
  TrajectoryPlan plan;
  plan.depth = shape.depth;
  plan.cluster = cluster;
  plan.chains = chains;
  const int last = shape.depth - 1, latent = shape.width[0];
  // outputs of a layer that a block holds: all of the first hidden one's
  const auto held = [&](int l) { return l == 0 && last > 0 ? shape.width[1] : plan.slice[l]; };
  Layouter place;
  for (int l = 0; l <= last; ++l) {
    plan.slice[l] = ceil_div(shape.width[l + 1], cluster);
    plan.slice_reciprocal[l] = static_cast<unsigned>(((1ull << 32) + plan.slice[l] - 1) / plan.slice[l]);
    plan.weight_stride[l] = odd_stride(held(l));
    plan.weight[l] = place.take(round_up(shape.width[l], 8) * plan.weight_stride[l]);
  }
  int received = 0;
  for (int l = 0; l <= last; ++l) {
    plan.bias[l] = place.take(held(l));
    if (l == last) break;
    received = std::max(received, plan.slice[l]);
    plan.value_stride[l] = pair_stride(round_up(shape.width[l + 1], 8));
    plan.value[l] = place.take(chains * plan.value_stride[l]);
  }
  plan.z_stride = pair_stride(round_up(latent, 8));
  plan.z = place.take(chains * plan.z_stride);
  plan.x_stride = plan.slice[last] + 1;
  plan.x = place.take(chains * plan.x_stride);
  plan.residual_stride = odd_stride(round_up(plan.slice[last], 8));
  plan.residual = place.take(chains * plan.residual_stride);
  plan.log_p = place.take(chains * plan.x_stride);
  for (int l = 1; l < last; ++l) {
    plan.slice_delta_stride[l] = odd_stride(round_up(plan.slice[l], 8));
    plan.slice_delta[l] = place.take(chains * plan.slice_delta_stride[l]);
  }
  plan.delta_stride = odd_stride(round_up(last > 0 ? shape.width[1] : 1, 8));
  plan.delta = place.take(chains * plan.delta_stride);
  plan.received_size = round_up(cluster * received * chains, 4);
  plan.received = place.take(2 * plan.received_size);
  plan.answer = place.take(2 * cluster * latent * chains);
  int scratch = 0;
  const auto shared_out = [&](int rows, int k) {
    ProductPlan p{tiles_of(rows), 0};
    if (p.tiles <= warps / 2) {
      p.parts = std::min(std::min(warps / p.tiles, steps_of(k)), scratch_floats / (16 * p.tiles * chains));
      p.parts = std::max(1, p.parts);
    }
    scratch = std::max(scratch, p.parts * 16 * p.tiles * chains);
    return p;
  };
  for (int l = 0; l <= last; ++l) {
    plan.forward[l] = shared_out(held(l), shape.width[l]);
    plan.backward[l] = shared_out(shape.width[l], held(l));
  }
  plan.boxes = place.take(2 * 4);
  plan.schedule = place.take(2 * shape.depth * warps * static_cast<int>(sizeof(Share) / sizeof(float)));
  plan.scratch = place.take(scratch);
  plan.doubles = round_up(place.size(), 4);
  const int doubles = 5 * latent * chains + (5 + 2 * cluster) * chains + 1;
  plan.bytes = round_up(4 * plan.doubles + 8 * doubles + 4 * (3 * chains + 2), 16);
  for (int l = 0; l <= last; ++l) {  // fragments of the last rows read beyond the weights
    const int rows = 16 * tiles_of(shape.width[l]), cols = 16 * tiles_of(held(l));
    const int end = plan.weight[l] + rows * plan.weight_stride[l] + cols + 8;
    plan.bytes = std::max(plan.bytes, round_up(4 * end, 16));
  }
  return plan;
}

// A decoder whose shape the compiler knows, so that all places and counts are constants: the paper's two. ReLU,
// Bernoulli.
template <int depth, int w0, int w1, int w2 = 0, int w3 = 0>
struct Known {
  static constexpr bool known = true;
  static constexpr int cluster = 8, chains = 8;
  static constexpr __host__ __device__ Shape shape() { return {depth, {w0, w1, w2, w3}}; }
  static constexpr __host__ __device__ TrajectoryPlan plan() { return layout(shape(), chains, cluster); }
};
struct Unknown {
  static constexpr bool known = false;
};
template <class Decoder>
__device__ constexpr TrajectoryPlan known_plan = Decoder::plan();
using PaperVae = Known<3, 10, 200, 200, 784>;
using PaperFactorization = Known<1, 50, 784>;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // what follows needs clusters

// Addresses in the shared memory of the cluster's blocks.
__device__ __forceinline__ unsigned remote_address(const void* mine, int rank) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(rank));
  return address;
}

// A place where a block waits for numbers that the blocks of its cluster, itself among them, store into its shared
// memory: each announces its bytes when it has arrived. Lighter than a meeting of the cluster, which is a fence for all
// memory. A store for the next time is never made before this block has waited for the last: what it must have sent
// before comes after its wait.
class Mailbox {
 public:
  __device__ void set_up() const { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address()) : "memory"); }
  __device__ void expect(int bytes) const {  // one thread, once each time
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  __device__ void wait(int phase) const {
    asm volatile(
        "{\n .reg .pred done;\n again:\n"
        " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}" ::"r"(
            address()),
        "r"(phase)
        : "memory");
  }
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(this)); }

 private:
  unsigned long long words_;
};

__device__ __forceinline__ void send(float* place, const Mailbox& box, int rank, float value) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote_address(place, rank)),
      "r"(__float_as_uint(value)), "r"(remote_address(&box, rank))
      : "memory");
}
__device__ __forceinline__ void send(double* place, const Mailbox& box, int rank, double value) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote_address(place, rank)),
      "l"(__double_as_longlong(value)), "r"(remote_address(&box, rank))
      : "memory");
}

template <class Decoder, int depth, int NT, Math math>
class Block {
 public:
  static constexpr int NC = 8 * NT, last = depth - 1;

  __device__ Block(const Space& space, const TrajectorySpec& spec, float* shared, int run, int first)
      : space_(space),
        spec_(spec),
        shared_(shared),
        cluster_(cg::this_cluster()),
        rank_(static_cast<int>(cluster_.block_rank())),
        run_(run),
        first_(first) {
    double* d = reinterpret_cast<double*>(shared + plan().doubles);
    const int points = latent() * NC;
    z_ = d;
    gradient_ = d + points;
    position_ = d + 2 * points;
    momentum_ = d + 3 * points;
    slope_ = d + 4 * points;
    d += 5 * points;
    value_ = d;
    proposed_ = d + NC;
    energy_ = d + 2 * NC;
    acceptance_ = d + 3 * NC;
    partial_value_ = d + 4 * NC;
    received_value_ = d + 5 * NC;  // (2, cluster, NC)
    d += (5 + 2 * plan().cluster) * NC;
    epsilon_ = d;
    length_ = reinterpret_cast<int*>(d + 1);
    proposals_ = length_ + NC;
    nonfinite_ = proposals_ + NC;
    counts_ = nonfinite_ + NC;  // accepted, proposals
    boxes_ = reinterpret_cast<Mailbox*>(shared + plan().boxes);
    log_p_ = shared + plan().log_p;
    schedule_ = reinterpret_cast<Share*>(shared + plan().schedule);
  }

  __device__ void run();

 private:
  // What is known of the decoder when the kernel is compiled, or when it is started.
  __device__ __forceinline__ decltype(auto) plan() const {
    if constexpr (Decoder::known)
      return static_cast<const TrajectoryPlan&>(known_plan<Decoder>);
    else
      return static_cast<const TrajectoryPlan&>(spec_.plan);
  }
  __device__ __forceinline__ int width(int l) const {  // of layer l's inputs; depth: of the pixels
    if constexpr (Decoder::known) {
      constexpr Shape shape = Decoder::shape();
      return shape.width[l];
    } else {
      return l < depth ? spec_.decoder.layer[l].inputs : spec_.decoder.layer[depth - 1].outputs;
    }
  }
  __device__ __forceinline__ int latent() const { return width(0); }
  __device__ __forceinline__ int begin(int l) const { return whole(l) ? 0 : rank_ * plan().slice[l]; }
  __device__ __forceinline__ int count(int l) const {  // outputs of layer l that this block holds
    if (whole(l)) return width(l + 1);
    if constexpr (Decoder::known) {
      static_assert(divides());
      return plan().slice[l];
    }
    return max(0, min(plan().slice[l], width(l + 1) - begin(l)));
  }
  static constexpr __host__ __device__ bool divides() {  // every block holds as much
    if constexpr (Decoder::known) {
      constexpr Shape shape = Decoder::shape();
      for (int l = last > 0 ? 1 : 0; l < depth; ++l)
        if (shape.width[l + 1] % Decoder::cluster != 0) return false;
    }
    return true;
  }
  __device__ __forceinline__ Activation activation() const {
    return Decoder::known ? Activation::relu : spec_.decoder.activation;
  }
  __device__ __forceinline__ Density density() const { return Decoder::known ? Density::bernoulli : spec_.density; }

  enum Box { values_box, sums_box, answer_box, box_count };
  static __device__ constexpr bool whole(int l) { return l == 0 && last > 0; }
  template <int l>
  __device__ int owner(int row) const {  // the block whose slice of layer l's outputs a row belongs to
    return plan().slice[l] == 1 ? row
                                : static_cast<int>(__umulhi(static_cast<unsigned>(row), plan().slice_reciprocal[l]));
  }
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  template <int l>
  __device__ float* recorded(float* const (&arrays)[max_layers], int chain, int unit) const {  // a number of the tape
    return arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * spec_.decoder.layer[l].ld +
           unit;
  }

  __device__ void load();
  __device__ void make_schedule();
  template <bool forward>
  __device__ void tile_sums(const float* w, int stride, int row, int begin, int end, const float* b, int b_stride,
                            float (&c)[NT][4]) const;
  template <int l, bool forward, class Use>
  __device__ void product(int rows, int k, const float* b, int b_stride, Use use);

  template <bool records>
  __device__ void evaluate(bool wants_value);
  template <int l, bool records>
  __device__ void forward_hidden();
  template <bool records>
  __device__ void compare(bool wants_value);
  template <int l, bool records>
  __device__ void pass_down(const float* b, int b_stride);
  __device__ void record_first_delta();
  __device__ void answer(const float* b, int b_stride);
  __device__ void receive(int box, int bytes) {  // what was sent to all has come
    if (threadIdx.x == 0) boxes_[box].expect(bytes);
    boxes_[box].wait(phases_ >> box & 1);
    phases_ ^= 1u << box;
  }

  __device__ void begin_chains();
  __device__ void draw_momenta(std::uint32_t step);
  __device__ void start_trajectory();
  __device__ void leap(int index);
  __device__ void accept(std::uint32_t step);
  __device__ void meet(int step);
  __device__ void write_refined();
  __device__ void place(const double* from, bool lost_at_zero);

  const Space& space_;
  const TrajectorySpec& spec_;
  float* shared_;
  cg::cluster_group cluster_;
  int rank_, run_, first_;
  int parity_ = 0;
  std::uint64_t seed_ = 0;
  std::uint32_t iteration_ = 0;
  double *z_, *gradient_, *position_, *momentum_, *slope_;  // (D, NC)
  double *value_, *proposed_, *energy_, *acceptance_, *partial_value_, *received_value_, *epsilon_;
  int *length_, *proposals_, *nonfinite_, *counts_;
  float* log_p_;     // (NC, pixels of the slice): terms of log p(x | z), as x lies
  Share* schedule_;  // (depth, forward or backward, warps)
  Mailbox* boxes_;
  unsigned phases_ = 0;  // a bit a box
};

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::load() {
  auto* all = reinterpret_cast<float4*>(shared_);
  for (int i = threadIdx.x; i < plan().bytes / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  const float* parameters = space_.parameters + run_ * space_.stride;
#pragma unroll
  for (int l = 0; l < depth; ++l) {
    const Layer& layer = spec_.decoder.layer[l];
    const int cols = count(l), from = begin(l), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* weights = parameters + layer.weight + from;
    float* w = shared_ + plan().weight[l];
    constexpr int rows_at_once = 4, cols_at_once = 4;  // so many loads are under way
    for (int row0 = warp; row0 < layer.inputs; row0 += rows_at_once * warps)
      for (int col0 = lane; col0 < cols; col0 += 32 * cols_at_once) {
        float value[rows_at_once][cols_at_once];
#pragma unroll
        for (int r = 0; r < rows_at_once; ++r)
#pragma unroll
          for (int c = 0; c < cols_at_once; ++c) {
            const int row = row0 + r * warps, col = col0 + 32 * c;
            value[r][c] =
                row < layer.inputs && col < cols ? weights[static_cast<std::size_t>(row) * layer.ld + col] : 0.0f;
          }
#pragma unroll
        for (int r = 0; r < rows_at_once; ++r)
#pragma unroll
          for (int c = 0; c < cols_at_once; ++c) {
            const int row = row0 + r * warps, col = col0 + 32 * c;
            if (row < layer.inputs && col < cols) w[row * plan().weight_stride[l] + col] = rounded<math>(value[r][c]);
          }
      }
    if (layer.has_bias)
      for (int col = threadIdx.x; col < cols; col += threads)
        shared_[plan().bias[l] + col] = parameters[layer.bias + from + col];
  }
  const float* x = space_.of(space_.x, run_);
#pragma unroll 4
  for (int chain = 0; chain < NC; ++chain)
    for (int col = threadIdx.x; real(chain) && col < count(last); col += threads)
      shared_[plan().x + chain * plan().x_stride + col] =
          x[static_cast<std::size_t>(first_ + chain) * space_.ld_pixels + begin(last) + col];
  for (int i = threadIdx.x; i < NC * latent(); i += threads) {
    const int chain = i % NC, d = i / NC;
    if (real(chain)) position_[i] = space_.of(space_.z0, run_)[static_cast<std::size_t>(first_ + chain) * latent() + d];
  }
  const RunState& state = *space_.of(space_.state, run_);
  iteration_ = state.iteration;
  seed_ = spec_.seed[run_];
  if (threadIdx.x == 0) *epsilon_ = state.step_size;
  make_schedule();
  __syncthreads();
}

// What every warp does in the products that are split, once and for all.
template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::make_schedule() {
  for (int i = threadIdx.x; i < 2 * depth * warps; i += threads) {
    const int l = i / (2 * warps), warp = i % warps;
    const bool forward = i / warps % 2 == 0;
    const ProductPlan how = forward ? plan().forward[l] : plan().backward[l];
    if (how.parts == 0) continue;
    int k = width(l);
    if (!forward) {
      const int outputs = width(l + 1);
      k = whole(l) ? outputs : max(0, min(plan().slice[l], outputs - rank_ * plan().slice[l]));
    }
    const int steps = steps_of(k), part = warp / how.tiles;
    schedule_[i] = part < how.parts ? Share{warp % how.tiles, steps * part / how.parts, steps * (part + 1) / how.parts}
                                    : Share{-1, 0, 0};
  }
}

// Sums over the k of steps [begin, end) for 16 rows. Weights (inputs, outputs) as they lie: forward, results are
// outputs and k the inputs; backward, results are inputs and k the outputs of the slice. Neighbouring k of a fragment
// differ between the two, so that both touch every bank once.
template <class Decoder, int depth, int NT, Math math>
template <bool forward>
__device__ void Block<Decoder, depth, NT, math>::tile_sums(const float* w, int stride, int row, int begin, int end,
                                                           const float* b, int b_stride, float (&c)[NT][4]) const {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const float* left_at = forward ? w + (8 * begin + 2 * t) * stride + row + g : w + (row + g) * stride + 8 * begin + t;
  const float* right_at = b + g * b_stride + 8 * begin + (forward ? 2 * t : t);
  const int other = forward ? stride : 8 * stride, left_step = forward ? 8 * stride : 8;
#pragma unroll 4
  for (int step = begin; step < end; ++step) {
    Operand<math, 4> left;
    left.set(0, left_at[0]);
    left.set(forward ? 1 : 2, left_at[forward ? 8 : 4]);
    left.set(forward ? 2 : 1, left_at[other]);
    left.set(3, left_at[other + (forward ? 8 : 4)]);
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      Operand<math, 2> right;
      const float* from = right_at + 8 * n * b_stride;
      if constexpr (forward) {
        const float2 two = *reinterpret_cast<const float2*>(from);
        right.set(0, two.x);
        right.set(1, two.y);
      } else {
        right.set(0, from[0]);
        right.set(1, from[4]);
      }
      multiply_add<math>(c[n], left, right);
    }
    left_at += left_step;
    right_at += 8;
  }
}

// use(row, chain, sum) for every result; the caller synchronizes before others read what it wrote.
template <class Decoder, int depth, int NT, Math math>
template <int l, bool forward, class Use>
__device__ void Block<Decoder, depth, NT, math>::product(int rows, int k, const float* b, int b_stride, Use use) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const float* w = shared_ + plan().weight[l];
  const int stride = plan().weight_stride[l];
  const ProductPlan how = forward ? plan().forward[l] : plan().backward[l];
  if (how.parts == 0) {
    for (int tile = warp; tile < how.tiles; tile += warps) {
      float c[NT][4] = {};
      tile_sums<forward>(w, stride, 16 * tile, 0, steps_of(k), b, b_stride, c);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * tile + g + 8 * half;
        if (row >= rows) continue;
#pragma unroll
        for (int n = 0; n < NT; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) use(row, 8 * n + 2 * t + e, c[n][2 * half + e]);
      }
    }
    return;
  }
  const Share share = schedule_[(2 * l + (forward ? 0 : 1)) * warps + warp];
  const int part_size = 16 * how.tiles * NC;
  float* scratch = shared_ + plan().scratch;
  if (share.tile >= 0) {
    float c[NT][4] = {};
    tile_sums<forward>(w, stride, 16 * share.tile, share.begin, share.end, b, b_stride, c);
    const int part = warp / how.tiles;
    float* to = scratch + part * part_size + (16 * share.tile + g) * NC + 2 * t;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      *reinterpret_cast<float2*>(to + 8 * n) = make_float2(c[n][0], c[n][1]);
      *reinterpret_cast<float2*>(to + 8 * NC + 8 * n) = make_float2(c[n][2], c[n][3]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * NC; i += threads) {
    float sum = 0;
#pragma unroll 4
    for (int part = 0; part < how.parts; ++part) sum += scratch[part * part_size + i];
    use(i / NC, i % NC, sum);
  }
}

template <class Decoder, int depth, int NT, Math math>
template <int l, bool records>
__device__ void Block<Decoder, depth, NT, math>::forward_hidden() {
  constexpr int below = l == 0 ? 0 : l - 1;
  const int from = begin(l), stride = plan().value_stride[l];
  const float* bias = shared_ + plan().bias[l];
  float* values = shared_ + plan().value[l];
  product<l, true>(count(l), width(l), shared_ + (l == 0 ? plan().z : plan().value[below]),
                   l == 0 ? plan().z_stride : plan().value_stride[below], [&](int row, int chain, float sum) {
                     const float h = rounded<math>(activate<math>(activation(), sum + bias[row]));
                     float* place = values + chain * stride + from + row;
                     if constexpr (whole(l)) {
                       *place = h;
                     } else {
#pragma unroll 4
                       for (int rank = 0; rank < plan().cluster; ++rank) send(place, boxes_[values_box], rank, h);
                     }
                     if constexpr (records)
                       if (real(chain) && (!whole(l) || owner<0>(row) == rank_))
                         *recorded<l>(spec_.tape.value, chain, from + row) = h;
                   });
  if constexpr (whole(l))
    __syncthreads();
  else
    receive(values_box, width(l + 1) * NC * 4);
}

template <class Decoder, int depth, int NT, Math math>
template <bool records>
__device__ void Block<Decoder, depth, NT, math>::compare(bool wants_value) {
  constexpr int below = last == 0 ? 0 : last - 1;
  const int rows = count(last), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* bias = shared_ + plan().bias[last];
  const float* data = shared_ + plan().x;
  float* residuals = shared_ + plan().residual;
  product<last, true>(rows, width(last), shared_ + (last == 0 ? plan().z : plan().value[below]),
                      last == 0 ? plan().z_stride : plan().value_stride[below], [&](int row, int chain, float sum) {
                        const float a = sum + bias[row];
                        const float x = data[chain * plan().x_stride + row];
                        float r = residual<math>(density(), a, x);
                        if (wants_value) log_p_[chain * plan().x_stride + row] = log_probability<math>(density(), a, x);
                        if constexpr (records) {
                          if (value_[chain] == -infinity) r = 0;
                          if (real(chain)) *recorded<last>(spec_.tape.delta, chain, begin(last) + row) = r;
                        }
                        residuals[chain * plan().residual_stride + row] = rounded<math>(r);
                      });
  __syncthreads();
  if (!wants_value) return;
  for (int chain = warp; chain < NC; chain += warps) {  // sums in an order of their own, one warp a chain
    double sum = 0;
    for (int row = lane; row < rows; row += 32) sum += log_p_[chain * plan().x_stride + row];
    sum = warp_sum(sum);
    if (lane == 0) partial_value_[chain] = sum;
  }
  __syncthreads();
}

// From ∂ / ∂a_{l+1}, as `b` (chain, unit of this block), to ∂ / ∂a_l: of layer 0 a partial sum for all its units, whose
// slopes every block knows; of others their owners' sums.
template <class Decoder, int depth, int NT, Math math>
template <int l, bool records>
__device__ void Block<Decoder, depth, NT, math>::pass_down(const float* b, int b_stride) {
  const int units = width(l + 1);
  const float* values = shared_ + plan().value[l];
  if constexpr (l == 0) {
    float* deltas = shared_ + plan().delta;
    product<1, false>(units, count(1), b, b_stride, [&](int row, int chain, float sum) {
      const float h = values[chain * plan().value_stride[0] + row];
      deltas[chain * plan().delta_stride + row] = rounded<math>(sum * slope<math>(activation(), h));
    });
    __syncthreads();
    if constexpr (records) record_first_delta();
  } else {
    const int slice = plan().slice[l], mine = count(l);
    float* received = shared_ + plan().received + plan().received_size;  // the other half is for layer 0
    product<l + 1, false>(units, count(l + 1), b, b_stride, [&](int row, int chain, float sum) {
      const int rank = owner<l>(row);
      send(received + (rank_ * slice + row - rank * slice) * NC + chain, boxes_[sums_box], rank, sum);
    });
    receive(sums_box, plan().cluster * mine * NC * 4);
    for (int i = threadIdx.x; i < mine * NC; i += threads) {
      const int row = i / NC, chain = i % NC;
      float sum = 0;
#pragma unroll 8
      for (int rank = 0; rank < plan().cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
      sum *= slope<math>(activation(), values[chain * plan().value_stride[l] + begin(l) + row]);
      shared_[plan().slice_delta[l] + chain * plan().slice_delta_stride[l] + row] = rounded<math>(sum);
      if constexpr (records)
        if (real(chain)) *recorded<l>(spec_.tape.delta, chain, begin(l) + row) = sum;
    }
    __syncthreads();
  }
}

// The first layer's deltas are sums over the cluster: each block makes its slice of them.
template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::record_first_delta() {
  const int slice = plan().slice[0], units = width(1);
  float* received = shared_ + plan().received;
  for (int i = threadIdx.x; i < units * NC; i += threads) {
    const int row = i / NC, chain = i % NC, rank = owner<0>(row);
    *cluster_.map_shared_rank(received + (rank_ * slice + row - rank * slice) * NC + chain, rank) =
        shared_[plan().delta + chain * plan().delta_stride + row];
  }
  cluster_.sync();
  const int mine = max(0, min(slice, units - rank_ * slice));
  for (int i = threadIdx.x; i < mine * NC; i += threads) {
    const int row = i / NC, chain = i % NC;
    float sum = 0;
    for (int rank = 0; rank < plan().cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
    if (real(chain)) *recorded<0>(spec_.tape.delta, chain, rank_ * slice + row) = sum;
  }
}

// This block's part of ∇_z log p(x | z) and of log p(x | z) → all blocks; then each sums all parts.
template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::answer(const float* b, int b_stride) {
  const int points = latent() * NC;
  float* answers = shared_ + plan().answer + parity_ * plan().cluster * points;
  product<0, false>(latent(), count(0), b, b_stride, [&](int row, int chain, float sum) {
    float* place = answers + rank_ * points + row * NC + chain;
#pragma unroll 4
    for (int rank = 0; rank < plan().cluster; ++rank) send(place, boxes_[answer_box], rank, sum);
  });
  double* values = received_value_ + parity_ * plan().cluster * NC;
  for (int i = threadIdx.x; i < NC * plan().cluster; i += threads)
    send(values + rank_ * NC + i % NC, boxes_[answer_box], i / NC, partial_value_[i % NC]);
  receive(answer_box, plan().cluster * (points * 4 + NC * 8));
  for (int i = threadIdx.x; i < points; i += threads) {
    float sum = 0;
#pragma unroll 8
    for (int rank = 0; rank < plan().cluster; ++rank) sum += answers[rank * points + i];
    slope_[i] = static_cast<double>(sum) - position_[i];
  }
  parity_ ^= 1;
}

template <class Decoder, int depth, int NT, Math math>
template <bool records>
__device__ void Block<Decoder, depth, NT, math>::evaluate(bool wants_value) {
  if constexpr (depth > 1) forward_hidden<0, records>();
  if constexpr (depth > 2) forward_hidden<1, records>();
  compare<records>(wants_value);
  const float* b = shared_ + plan().residual;
  int stride = plan().residual_stride;
  if constexpr (depth > 2) {
    pass_down<1, records>(b, stride);
    b = shared_ + plan().slice_delta[1];
    stride = plan().slice_delta_stride[1];
  }
  if constexpr (depth > 1) {
    pass_down<0, records>(b, stride);
    b = shared_ + plan().delta;
    stride = plan().delta_stride;
  }
  if constexpr (!records) answer(b, stride);
}

// log p(x, z) of the point just evaluated, for one chain a warp
template <int NC>
__device__ double value_here(const double* position, const double* received, int latent, int cluster, double constant,
                             int chain, int lane) {
  double prior = 0;
  for (int d = lane; d < latent; d += 32) prior -= 0.5 * (square(position[d * NC + chain]) + log_two_pi);
  double value = constant + warp_sum(prior);
  for (int rank = 0; rank < cluster; ++rank) value += received[rank * NC + chain];
  return value;
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::begin_chains() {
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double* received = received_value_ + (parity_ ^ 1) * plan().cluster * NC;
  for (int chain = warp; chain < NC; chain += warps) {
    const double constant = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
    const double value = value_here<NC>(position_, received, latent(), plan().cluster, constant, chain, lane);
    bool finite = isfinite(value) && real(chain);
    for (int d = lane; d < latent(); d += 32) finite = finite && isfinite(slope_[d * NC + chain]);
    finite = __all_sync(0xFFFFFFFFu, finite);
    for (int d = lane; d < latent(); d += 32) {
      const int i = d * NC + chain;
      z_[i] = position_[i];
      gradient_[i] = finite ? slope_[i] : 0;
      if (rank_ == 0 && real(chain))
        space_.of(space_.grad_p0, run_)[static_cast<std::size_t>(first_ + chain) * latent() + d] = gradient_[i];
    }
    if (lane != 0) continue;
    value_[chain] = finite ? value : -infinity;
    acceptance_[chain] = 0;
    proposals_[chain] = nonfinite_[chain] = 0;
    if (rank_ != 0 || !real(chain)) continue;
    space_.of(space_.alive, run_)[first_ + chain] = finite;
    space_.of(space_.log_p0, run_)[first_ + chain] = finite ? value : 0;
  }
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::draw_momenta(std::uint32_t step) {
  const int pairs = (latent() + 1) / 2;
  for (int i = threadIdx.x; i < pairs * NC; i += threads) {
    const int pair = i / NC, chain = i % NC;
    const auto datum = static_cast<std::uint32_t>(first_ + chain);
    const auto normal =
        random_pair(seed_, {Purpose::momentum, iteration_, datum, step}, static_cast<std::uint32_t>(pair), true);
    momentum_[2 * pair * NC + chain] = normal.first;
    if (2 * pair + 1 < latent()) momentum_[(2 * pair + 1) * NC + chain] = normal.second;
    if (pair > 0) continue;
    int length = spec_.shape.leapfrog;
    if (spec_.shape.jitter > 0) {
      const double u = random_pair(seed_, {Purpose::leapfrog, iteration_, datum, step}, 0, false).first;
      length += static_cast<int>(u * (2 * spec_.shape.jitter + 1)) - spec_.shape.jitter;
    }
    length_[chain] = length;
  }
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::start_trajectory() {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double epsilon = *epsilon_;
  for (int chain = warp; chain < NC; chain += warps) {
    double energy = 0;
    for (int d = lane; d < latent(); d += 32) {
      const int i = d * NC + chain;
      energy += 0.5 * square(momentum_[i]);
      momentum_[i] += 0.5 * epsilon * gradient_[i];
      position_[i] = z_[i] + epsilon * momentum_[i];
      shared_[plan().z + chain * plan().z_stride + d] = rounded<math>(static_cast<float>(position_[i]));
    }
    energy = warp_sum(energy);
    if (lane == 0) energy_[chain] = energy;
  }
  if (threadIdx.x == 0) counts_[0] = counts_[1] = 0;
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::leap(int index) {
  const double epsilon = *epsilon_;
  for (int i = threadIdx.x; i < latent() * NC; i += threads) {
    const int chain = i % NC, d = i / NC, length = length_[chain];
    if (index > length) continue;
    momentum_[i] += (index == length ? 0.5 : 1) * epsilon * slope_[i];
    if (index == length) continue;
    position_[i] += epsilon * momentum_[i];
    shared_[plan().z + chain * plan().z_stride + d] = rounded<math>(static_cast<float>(position_[i]));
  }
  if (index < spec_.shape.leapfrog - spec_.shape.jitter) {
    __syncthreads();
    return;
  }
  // chains whose last step this was: their value and slope are those of the proposal
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double* received = received_value_ + (parity_ ^ 1) * plan().cluster * NC;
  for (int chain = warp; chain < NC; chain += warps) {
    if (length_[chain] != index) continue;
    const double constant = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
    const double value = value_here<NC>(position_, received, latent(), plan().cluster, constant, chain, lane);
    if (lane == 0) proposed_[chain] = value;
  }
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::accept(std::uint32_t step) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int chain = warp; chain < NC; chain += warps) {
    double kinetic = 0;
    bool finite = true;
    for (int d = lane; d < latent(); d += 32) {
      kinetic += 0.5 * square(momentum_[d * NC + chain]);
      finite = finite && isfinite(slope_[d * NC + chain]);
    }
    kinetic = warp_sum(kinetic);
    finite = __all_sync(0xFFFFFFFFu, finite);
    const double proposed = finite ? proposed_[chain] : -infinity, value = value_[chain];
    const auto datum = static_cast<std::uint32_t>(first_ + chain);
    const double uniform = random_pair(seed_, {Purpose::accept, iteration_, datum, step}, 0, false).first;
    const Decision decision = decide(proposed - value + energy_[chain] - kinetic, proposed, value, uniform);
    const bool moves = decision.outcome == Outcome::accepted;
    __syncwarp();
    for (int d = lane; moves && d < latent(); d += 32) {
      z_[d * NC + chain] = position_[d * NC + chain];
      gradient_[d * NC + chain] = slope_[d * NC + chain];
    }
    if (lane != 0) continue;
    if (moves) value_[chain] = proposed;
    acceptance_[chain] += decision.acceptance;
    proposals_[chain] += decision.outcome != Outcome::outside;
    nonfinite_[chain] += decision.outcome == Outcome::nonfinite;
    atomicAdd(&counts_[0], moves);
    atomicAdd(&counts_[1], decision.outcome != Outcome::outside);
  }
  __syncthreads();
}

// All clusters of the run tell how many of their proposals were accepted, and wait until they know of all.
template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::meet(int step) {
  if (threadIdx.x == 0) {
    unsigned long long* place = space_.of(space_.meeting, run_) + step;
    if (rank_ == 0)
      atomicAdd(place, (1ull << 40) + (static_cast<unsigned long long>(counts_[1]) << 20) +
                           static_cast<unsigned long long>(counts_[0]));
    unsigned long long seen;
    do {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(place) : "memory");
    } while (seen >> 40 < static_cast<unsigned long long>(spec_.clusters));
    const auto accepted = static_cast<double>(seen & 0xFFFFF), proposals = static_cast<double>(seen >> 20 & 0xFFFFF);
    if (proposals > 0) *epsilon_ = spec_.sizes.rule.next(*epsilon_, accepted / proposals);
  }
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::place(const double* from, bool lost_at_zero) {
  for (int i = threadIdx.x; i < latent() * NC; i += threads) {
    const int chain = i % NC, d = i / NC;
    const float z = lost_at_zero && value_[chain] == -infinity ? 0.0f : static_cast<float>(from[i]);
    shared_[plan().z + chain * plan().z_stride + d] = rounded<math>(z);
    if (lost_at_zero && rank_ == 0 && real(chain))
      space_.chains.input[run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * space_.ld_latent + d] = z;
  }
  __syncthreads();
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::write_refined() {
  if (rank_ != 0) return;
  const ChainArrays chains = space_.chains.of(run_);
  for (int i = threadIdx.x; i < latent() * NC; i += threads) {
    const int chain = i % NC, d = i / NC;
    if (real(chain)) chains.z[static_cast<std::size_t>(first_ + chain) * latent() + d] = z_[i];
  }
  for (int chain = threadIdx.x; chain < NC; chain += threads) {
    if (!real(chain)) continue;
    chains.value[first_ + chain] = value_[chain];
    chains.acceptance[first_ + chain] = acceptance_[chain];
    chains.proposals[first_ + chain] = proposals_[chain];
    chains.nonfinite[first_ + chain] = nonfinite_[chain];
  }
  if (threadIdx.x == 0 && first_ == 0 && spec_.adapt == Adapt::inside)
    space_.of(space_.state, run_)->step_size = *epsilon_;
}

template <class Decoder, int depth, int NT, Math math>
__device__ void Block<Decoder, depth, NT, math>::run() {
  load();
  place(position_, false);
  if (threadIdx.x < box_count) boxes_[threadIdx.x].set_up();
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cluster_.sync();  // all shared memory is set up before others write into it
  const int leaps = spec_.shape.leapfrog + spec_.shape.jitter, shortest = spec_.shape.leapfrog - spec_.shape.jitter;
  for (int step = -1, index = leaps;;) {  // step −1: the draws themselves
    evaluate<false>(step < 0 || index >= shortest);
    if (step < 0)
      begin_chains();
    else
      leap(index);
    if (index++ < leaps) continue;
    if (step >= 0) accept(static_cast<std::uint32_t>(step));
    if (step + 1 < spec_.steps) draw_momenta(static_cast<std::uint32_t>(step + 1));
    if (step >= 0 && spec_.adapt == Adapt::inside && step < spec_.adapting) meet(step);
    if (++step == spec_.steps) break;
    start_trajectory();
    index = 1;
  }
  write_refined();
  place(z_, true);
  evaluate<true>(false);
  cluster_.sync();  // nobody leaves while others may write to it
}

#endif

template <class Decoder, int depth, int NT, Math math>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  const int cluster = static_cast<int>(blockIdx.x) / spec.plan.cluster;
  Block<Decoder, depth, NT, math> block(space, spec, shared, first_run + cluster / spec.clusters,
                                        cluster % spec.clusters * 8 * NT);
  block.run();
#endif
}

using Kernel = void (*)(Space, TrajectorySpec, int);

template <int depth, Math math>
Kernel kernel_of(int chains) {
  switch (chains) {
    case 8: return trajectory<Unknown, depth, 1, math>;
    case 16: return trajectory<Unknown, depth, 2, math>;
    case 32: return trajectory<Unknown, depth, 4, math>;
    default: return nullptr;
  }
}
template <Math math>
Kernel kernel_of(int depth, int chains) {
  switch (depth) {
    case 1: return kernel_of<1, math>(chains);
    case 2: return kernel_of<2, math>(chains);
    case 3: return kernel_of<3, math>(chains);
    default: return nullptr;
  }
}
Kernel kernel_of(const TrajectoryPlan& plan, Math math) {
  if (plan.known == KnownDecoder::vae) return trajectory<PaperVae, 3, 1, Math::tf32>;
  if (plan.known == KnownDecoder::factorization) return trajectory<PaperFactorization, 1, 1, Math::tf32>;
  return math == Math::tf32 ? kernel_of<Math::tf32>(plan.depth, plan.chains)
                            : kernel_of<Math::fp32>(plan.depth, plan.chains);
}

cudaLaunchConfig_t launch_of(const TrajectoryPlan& plan, int clusters, cudaLaunchAttribute& attribute,
                             cudaStream_t stream) {
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = plan.cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(clusters * plan.cluster);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = plan.bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return config;
}

bool prepare(const TrajectoryPlan& plan, Math math) {
  const Kernel kernel = kernel_of(plan, math);
  const bool fits =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.bytes) == cudaSuccess &&
      (plan.cluster <= 8 ||
       cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess);
  if (!fits) cudaGetLastError();
  return fits;
}

}  // namespace

int resident_clusters(const TrajectoryPlan& plan, Math math) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = launch_of(plan, 1, attribute, nullptr);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel_of(plan, math), &config) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return clusters;
}

std::optional<TrajectoryPlan> plan_trajectory(const Net& decoder, Density density, int batch, int chains, int blocks,
                                              Math math) {
  int device = 0, major = 0, most = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "asking for the device's generation");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  if (major < 9 || decoder.depth > trajectory_layers) return {};
  Shape shape = {decoder.depth, {decoder.inputs()}};
  for (int l = 0; l < decoder.depth; ++l) shape.width[l + 1] = decoder.layer[l].outputs;
  const Activation activation = decoder.depth > 1 ? decoder.activation : Activation::relu;
  for (const int cluster : {8, 16, 4, 2}) {
    if (blocks > 0 && cluster != blocks) continue;
    TrajectoryPlan plan = layout(shape, chains, cluster);
    const bool usual = math == Math::tf32 && chains == 8 && cluster == 8 && activation == Activation::relu &&
                       density == Density::bernoulli;
    if (usual && shape == PaperVae::shape()) plan.known = KnownDecoder::vae;
    if (usual && shape == PaperFactorization::shape()) plan.known = KnownDecoder::factorization;
    if (plan.bytes > most || !prepare(plan, math)) continue;
    if (resident_clusters(plan, math) >= ceil_div(batch, chains)) return plan;
  }
  return {};
}

void launch_trajectory(const Space& space, const TrajectorySpec& spec, Math math, int first_run, int runs,
                       cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = launch_of(spec.plan, runs * spec.clusters, attribute, stream);
  check(cudaLaunchKernelEx(&config, kernel_of(spec.plan, math), space, spec, first_run), "starting a refinement");
}

}  // namespace hone::cuda
