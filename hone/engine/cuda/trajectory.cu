#include "hone/engine/cuda/trajectory.cuh"

#include <cooperative_groups.h>

#include <algorithm>

namespace hone::cuda {
namespace {

namespace cg = cooperative_groups;

constexpr int warps = 16, threads = 32 * warps;
constexpr int scratch_floats = 8192;

__host__ __device__ constexpr int steps_of(int k) { return (k + 7) / 8; }

// A product of `rows` results is shared out over the warps by pairs of 16 rows and by parts of k, whose sums wait in
// the scratch memory (part, row, chain).
__host__ __device__ constexpr int row_pairs(int rows) { return rows > 0 ? (rows + 31) / 32 : 1; }
__host__ __device__ constexpr int parts_of(int rows, int k, int chains) {
  const int room = scratch_floats / (32 * row_pairs(rows) * chains);
  int parts = warps / row_pairs(rows);
  parts = parts > steps_of(k) ? steps_of(k) : parts;
  parts = parts > room ? room : parts;
  return parts < 1 ? 1 : parts;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // what follows needs clusters

template <int NT, Math math>
class Block {
 public:
  static constexpr int NC = 8 * NT;

  __device__ Block(const Space& space, const TrajectorySpec& spec, float* shared, int run, int first)
      : space_(space), spec_(spec), plan_(spec.plan), shared_(shared), cluster_(cg::this_cluster()),
        rank_(static_cast<int>(cluster_.block_rank())), run_(run), first_(first) {
    double* d = reinterpret_cast<double*>(shared + plan_.doubles);
    const int points = space.latent * NC;
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
    partial_value_ = d + 4 * NC;                          // (warps, NC)
    received_value_ = d + (4 + warps) * NC;               // (2, cluster, NC)
    d += (4 + warps + 2 * plan_.cluster) * NC;
    epsilon_ = d;
    bad_ = reinterpret_cast<int*>(d + 1);
    length_ = bad_ + NC;
    proposals_ = length_ + NC;
    nonfinite_ = proposals_ + NC;
    counts_ = nonfinite_ + NC;  // accepted, proposals
  }

  __device__ void run();

 private:
  __device__ int last() const { return spec_.decoder.depth - 1; }
  __device__ bool whole(int l) const { return l == 0 && last() > 0; }
  __device__ int begin(int l) const { return whole(l) ? 0 : rank_ * plan_.slice[l]; }
  __device__ int count(int l) const {  // outputs of layer l that this block holds
    const int outputs = spec_.decoder.layer[l].outputs;
    return whole(l) ? outputs : max(0, min(plan_.slice[l], outputs - rank_ * plan_.slice[l]));
  }
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  __device__ float* remote(float* p, int rank) const { return cluster_.map_shared_rank(p, rank); }

  __device__ void load();
  template <bool forward>
  __device__ void product(int l, int rows, int k, const float* b, int b_stride);
  template <class Use>
  __device__ void sums(int rows, int k, Use use);

  __device__ void evaluate(bool wants_value, bool records);
  __device__ void forward_hidden(int l, bool records);
  __device__ void compare(bool wants_value, bool records);
  __device__ void pass_down(int l, bool records);
  __device__ void record_first_delta();
  __device__ void answer();

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
  const TrajectoryPlan& plan_;
  float* shared_;
  cg::cluster_group cluster_;
  int rank_, run_, first_;
  int parity_ = 0;
  std::uint64_t seed_ = 0;
  std::uint32_t iteration_ = 0;
  double *z_, *gradient_, *position_, *momentum_, *slope_;  // (D, NC)
  double *value_, *proposed_, *energy_, *acceptance_, *partial_value_, *received_value_, *epsilon_;
  int *bad_, *length_, *proposals_, *nonfinite_, *counts_;
};

template <int NT, Math math>
__device__ void Block<NT, math>::load() {
  auto* all = reinterpret_cast<float4*>(shared_);
  for (int i = threadIdx.x; i < plan_.bytes / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  const float* parameters = space_.parameters + run_ * space_.stride;
  for (int l = 0; l <= last(); ++l) {
    const Layer& layer = spec_.decoder.layer[l];
    const int cols = count(l), from = begin(l), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* w = shared_ + plan_.weight[l];
#pragma unroll 4
    for (int row = warp; row < layer.inputs; row += warps)
      for (int col = lane; col < cols; col += 32)
        w[row * plan_.weight_stride[l] + col] =
            rounded<math>(parameters[layer.weight + static_cast<std::size_t>(row) * layer.ld + from + col]);
    if (layer.has_bias)
      for (int col = threadIdx.x; col < cols; col += threads)
        shared_[plan_.bias[l] + col] = parameters[layer.bias + from + col];
  }
  const float* x = space_.of(space_.x, run_);
  for (int i = threadIdx.x; i < NC * count(last()); i += threads) {
    const int chain = i / count(last()), col = i % count(last());
    if (real(chain))
      shared_[plan_.x + chain * plan_.x_stride + col] =
          x[static_cast<std::size_t>(first_ + chain) * space_.ld_pixels + begin(last()) + col];
  }
  for (int i = threadIdx.x; i < NC * space_.latent; i += threads) {
    const int chain = i % NC, d = i / NC;
    if (real(chain)) position_[i] = space_.of(space_.z0, run_)[static_cast<std::size_t>(first_ + chain) * space_.latent + d];
  }
  const RunState& state = *space_.of(space_.state, run_);
  iteration_ = state.iteration;
  seed_ = spec_.seed[run_];
  if (threadIdx.x == 0) *epsilon_ = state.step_size;
  __syncthreads();
}

// Weights (k, outputs) as they lie: forward, results are outputs and k the inputs; backward, results are inputs and k
// the outputs of the slice. Neighbouring k of a fragment differ between the two, so that both touch every bank once.
template <int NT, Math math>
template <bool forward>
__device__ void Block<NT, math>::product(int l, int rows, int k, const float* b, int b_stride) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int pairs = row_pairs(rows), parts = parts_of(rows, k, NC), steps = steps_of(k);
  const float* w = shared_ + plan_.weight[l];
  const int stride = plan_.weight_stride[l];
  for (int item = warp; item < pairs * parts; item += warps) {
    const int pair = item % pairs, part = item / pairs;
    float c[2][NT][4] = {};
#pragma unroll 4
    for (int step = steps * part / parts; step < steps * (part + 1) / parts; ++step) {
      Operand<math, 2> right[NT];
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        const float* from = b + (8 * n + g) * b_stride + 8 * step;
        if constexpr (forward) {
          const float2 two = *reinterpret_cast<const float2*>(from + 2 * t);
          right[n].set(0, two.x);
          right[n].set(1, two.y);
        } else {
          right[n].set(0, from[t]);
          right[n].set(1, from[t + 4]);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Operand<math, 4> left;
        const int row = 32 * pair + 16 * half + g;
        if constexpr (forward) {
          const float* from = w + (8 * step + 2 * t) * stride + row;
          left.set(0, from[0]);
          left.set(1, from[8]);
          left.set(2, from[stride]);
          left.set(3, from[stride + 8]);
        } else {
          const float* from = w + row * stride + 8 * step + t;
          left.set(0, from[0]);
          left.set(1, from[8 * stride]);
          left.set(2, from[4]);
          left.set(3, from[8 * stride + 4]);
        }
#pragma unroll
        for (int n = 0; n < NT; ++n) multiply_add<math>(c[half][n], left, right[n]);
      }
    }
    float* to = shared_ + plan_.scratch + (part * 32 * pairs + 32 * pair + g) * NC + 2 * t;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        *reinterpret_cast<float2*>(to + 16 * half * NC + 8 * n) = make_float2(c[half][n][0], c[half][n][1]);
        *reinterpret_cast<float2*>(to + (16 * half + 8) * NC + 8 * n) = make_float2(c[half][n][2], c[half][n][3]);
      }
  }
  __syncthreads();
}

// use(row, chain, sum) for the results of the last product
template <int NT, Math math>
template <class Use>
__device__ void Block<NT, math>::sums(int rows, int k, Use use) {
  const int parts = parts_of(rows, k, NC), stride = 32 * row_pairs(rows) * NC;
  const float* scratch = shared_ + plan_.scratch;
  for (int i = threadIdx.x; i < rows * NC; i += threads) {
    float sum = scratch[i];
    for (int part = 1; part < parts; ++part) sum += scratch[part * stride + i];
    use(i / NC, i % NC, sum);
  }
}

template <int NT, Math math>
__device__ void Block<NT, math>::forward_hidden(int l, bool records) {
  const Layer& layer = spec_.decoder.layer[l];
  const int rows = count(l), from = begin(l);
  product<true>(l, rows, layer.inputs, shared_ + (l == 0 ? plan_.z : plan_.value[l - 1]),
                l == 0 ? plan_.z_stride : plan_.value_stride[l - 1]);
  float* values = shared_ + plan_.value[l];
  sums(rows, layer.inputs, [&](int row, int chain, float sum) {
    const float h = rounded<math>(activate<math>(spec_.decoder.activation, sum + shared_[plan_.bias[l] + row]));
    const int place = chain * plan_.value_stride[l] + from + row;
    if (whole(l)) {
      values[place] = h;
    } else {
      for (int rank = 0; rank < plan_.cluster; ++rank) remote(values, rank)[place] = h;
    }
    if (records && real(chain) && (!whole(l) || row / plan_.slice[0] == rank_))
      spec_.tape.value[l][run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * layer.ld + from + row] = h;
  });
  if (whole(l))
    __syncthreads();
  else
    cluster_.sync();
}

template <int NT, Math math>
__device__ void Block<NT, math>::compare(bool wants_value, bool records) {
  const int l = last(), rows = count(l), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Layer& layer = spec_.decoder.layer[l];
  product<true>(l, rows, layer.inputs, shared_ + (l == 0 ? plan_.z : plan_.value[l - 1]),
                l == 0 ? plan_.z_stride : plan_.value_stride[l - 1]);
  float likelihood = 0;  // of chain threadIdx.x % NC
  sums(rows, layer.inputs, [&](int row, int chain, float sum) {
    const float a = sum + shared_[plan_.bias[l] + row];
    const float x = shared_[plan_.x + chain * plan_.x_stride + row];
    float r = residual<math>(spec_.density, a, x);
    if (wants_value) likelihood += log_probability<math>(spec_.density, a, x);
    if (records) {
      if (value_[chain] == -infinity) r = 0;
      if (real(chain))
        spec_.tape.delta[l][run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * layer.ld + begin(l) + row] = r;
    }
    shared_[plan_.residual + chain * plan_.residual_stride + row] = rounded<math>(r);
  });
  if (wants_value) {
    double sum = likelihood;
#pragma unroll
    for (int offset = 16; offset >= NC; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (lane < NC) partial_value_[warp * NC + lane] = sum;
  }
  __syncthreads();
}

// From partial sums d / dh_l of all its units, in the scratch memory, to those of the layer below.
template <int NT, Math math>
__device__ void Block<NT, math>::pass_down(int l, bool records) {
  const Layer& layer = spec_.decoder.layer[l];
  const int above = count(l + 1);  // k of the product that made the sums
  if (l == 0) {
    sums(layer.outputs, above, [&](int row, int chain, float sum) {
      const float h = shared_[plan_.value[0] + chain * plan_.value_stride[0] + row];
      shared_[plan_.delta + chain * plan_.delta_stride + row] = rounded<math>(sum * slope<math>(spec_.decoder.activation, h));
    });
    __syncthreads();
    if (records) record_first_delta();
    product<false>(0, layer.inputs, layer.outputs, shared_ + plan_.delta, plan_.delta_stride);
    return;
  }
  const int slice = plan_.slice[l], mine = count(l);
  float* received = shared_ + plan_.received;
  sums(layer.outputs, above, [&](int row, int chain, float sum) {
    remote(received, row / slice)[(rank_ * slice + row % slice) * NC + chain] = sum;
  });
  cluster_.sync();
  for (int i = threadIdx.x; i < mine * NC; i += threads) {
    const int row = i / NC, chain = i % NC;
    float sum = 0;
    for (int rank = 0; rank < plan_.cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
    sum *= slope<math>(spec_.decoder.activation, shared_[plan_.value[l] + chain * plan_.value_stride[l] + begin(l) + row]);
    shared_[plan_.slice_delta + chain * plan_.slice_delta_stride + row] = rounded<math>(sum);
    if (records && real(chain))
      spec_.tape.delta[l][run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * layer.ld + begin(l) + row] = sum;
  }
  __syncthreads();
  product<false>(l, layer.inputs, mine, shared_ + plan_.slice_delta, plan_.slice_delta_stride);
}

// The first layer's deltas are sums over the cluster: each block makes its slice of them.
template <int NT, Math math>
__device__ void Block<NT, math>::record_first_delta() {
  const Layer& layer = spec_.decoder.layer[0];
  const int slice = plan_.slice[0];
  float* received = shared_ + plan_.received;
  cluster_.sync();  // what was received before has been read
  for (int i = threadIdx.x; i < layer.outputs * NC; i += threads) {
    const int row = i / NC, chain = i % NC;
    remote(received, row / slice)[(rank_ * slice + row % slice) * NC + chain] =
        shared_[plan_.delta + chain * plan_.delta_stride + row];
  }
  cluster_.sync();
  const int mine = max(0, min(slice, layer.outputs - rank_ * slice));
  for (int i = threadIdx.x; i < mine * NC; i += threads) {
    const int row = i / NC, chain = i % NC;
    float sum = 0;
    for (int rank = 0; rank < plan_.cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
    if (real(chain))
      spec_.tape.delta[0][run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * layer.ld + rank_ * slice + row] = sum;
  }
}

// This block's part of ∇_z log p(x | z) and of log p(x | z) → all blocks; then each sums all parts.
template <int NT, Math math>
__device__ void Block<NT, math>::answer() {
  const Layer& layer = spec_.decoder.layer[0];
  const int k = last() > 0 ? layer.outputs : count(0), points = space_.latent * NC;
  const int parts = parts_of(layer.inputs, k, NC), stride = 32 * row_pairs(layer.inputs) * NC;
  float* answers = shared_ + plan_.answer + parity_ * plan_.cluster * points;
  const float* scratch = shared_ + plan_.scratch;
  for (int i = threadIdx.x; i < points * plan_.cluster; i += threads) {
    const int e = i % points;
    float sum = scratch[e];
    for (int part = 1; part < parts; ++part) sum += scratch[part * stride + e];
    remote(answers, i / points)[rank_ * points + e] = sum;
  }
  double* values = received_value_ + parity_ * plan_.cluster * NC;
  if (threadIdx.x < NC) {
    double sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += partial_value_[warp * NC + threadIdx.x];
    for (int rank = 0; rank < plan_.cluster; ++rank)
      cluster_.map_shared_rank(values, rank)[rank_ * NC + threadIdx.x] = sum;
  }
  cluster_.sync();
  for (int i = threadIdx.x; i < points; i += threads) {
    float sum = 0;
    for (int rank = 0; rank < plan_.cluster; ++rank) sum += answers[rank * points + i];
    slope_[i] = static_cast<double>(sum) - position_[i];
  }
  parity_ ^= 1;
}

template <int NT, Math math>
__device__ void Block<NT, math>::evaluate(bool wants_value, bool records) {
  for (int l = 0; l < last(); ++l) forward_hidden(l, records);
  compare(wants_value, records);
  product<false>(last(), spec_.decoder.layer[last()].inputs, count(last()), shared_ + plan_.residual, plan_.residual_stride);
  for (int l = last() - 1; l >= 0; --l) pass_down(l, records);
  if (!records) answer();
}

// log p(x, z) of the point just evaluated, for one chain a warp
template <int NC>
__device__ double value_here(const double* position, const double* received, int latent, int cluster, double constant, int chain,
                             int lane) {
  double prior = 0;
  for (int d = lane; d < latent; d += 32) prior -= 0.5 * (square(position[d * NC + chain]) + log_two_pi);
  double value = constant + warp_sum(prior);
  for (int rank = 0; rank < cluster; ++rank) value += received[rank * NC + chain];
  return value;
}

template <int NT, Math math>
__device__ void Block<NT, math>::begin_chains() {
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double* received = received_value_ + (parity_ ^ 1) * plan_.cluster * NC;
  for (int chain = warp; chain < NC; chain += warps) {
    const double constant = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
    const double value = value_here<NC>(position_, received, space_.latent, plan_.cluster, constant, chain, lane);
    bool finite = isfinite(value) && real(chain);
    for (int d = lane; d < space_.latent; d += 32) finite = finite && isfinite(slope_[d * NC + chain]);
    finite = __all_sync(0xFFFFFFFFu, finite);
    for (int d = lane; d < space_.latent; d += 32) {
      const int i = d * NC + chain;
      z_[i] = position_[i];
      gradient_[i] = finite ? slope_[i] : 0;
      if (rank_ == 0 && real(chain))
        space_.of(space_.grad_p0, run_)[static_cast<std::size_t>(first_ + chain) * space_.latent + d] = gradient_[i];
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

template <int NT, Math math>
__device__ void Block<NT, math>::draw_momenta(std::uint32_t step) {
  const int pairs = (space_.latent + 1) / 2;
  for (int i = threadIdx.x; i < pairs * NC; i += threads) {
    const int pair = i / NC, chain = i % NC;
    const auto datum = static_cast<std::uint32_t>(first_ + chain);
    const auto normal = random_pair(seed_, {Purpose::momentum, iteration_, datum, step}, static_cast<std::uint32_t>(pair), true);
    momentum_[2 * pair * NC + chain] = normal.first;
    if (2 * pair + 1 < space_.latent) momentum_[(2 * pair + 1) * NC + chain] = normal.second;
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

template <int NT, Math math>
__device__ void Block<NT, math>::start_trajectory() {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double epsilon = *epsilon_;
  for (int chain = warp; chain < NC; chain += warps) {
    double energy = 0;
    for (int d = lane; d < space_.latent; d += 32) {
      const int i = d * NC + chain;
      energy += 0.5 * square(momentum_[i]);
      momentum_[i] += 0.5 * epsilon * gradient_[i];
      position_[i] = z_[i] + epsilon * momentum_[i];
      shared_[plan_.z + chain * plan_.z_stride + d] = rounded<math>(static_cast<float>(position_[i]));
    }
    energy = warp_sum(energy);
    if (lane == 0) energy_[chain] = energy;
  }
  if (threadIdx.x == 0) counts_[0] = counts_[1] = 0;
  __syncthreads();
}

template <int NT, Math math>
__device__ void Block<NT, math>::leap(int index) {
  const double epsilon = *epsilon_;
  for (int i = threadIdx.x; i < space_.latent * NC; i += threads) {
    const int chain = i % NC, d = i / NC, length = length_[chain];
    if (index > length) continue;
    momentum_[i] += (index == length ? 0.5 : 1) * epsilon * slope_[i];
    if (index == length) continue;
    position_[i] += epsilon * momentum_[i];
    shared_[plan_.z + chain * plan_.z_stride + d] = rounded<math>(static_cast<float>(position_[i]));
  }
  if (index < spec_.shape.leapfrog - spec_.shape.jitter) {
    __syncthreads();
    return;
  }
  // chains whose last step this was: their value and slope are those of the proposal
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const double* received = received_value_ + (parity_ ^ 1) * plan_.cluster * NC;
  for (int chain = warp; chain < NC; chain += warps) {
    if (length_[chain] != index) continue;
    const double constant = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
    const double value = value_here<NC>(position_, received, space_.latent, plan_.cluster, constant, chain, lane);
    if (lane == 0) proposed_[chain] = value;
  }
  __syncthreads();
}

template <int NT, Math math>
__device__ void Block<NT, math>::accept(std::uint32_t step) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int chain = warp; chain < NC; chain += warps) {
    double kinetic = 0;
    bool finite = true;
    for (int d = lane; d < space_.latent; d += 32) {
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
    for (int d = lane; moves && d < space_.latent; d += 32) {
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
template <int NT, Math math>
__device__ void Block<NT, math>::meet(int step) {
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
    if (proposals > 0) *epsilon_ = spec_.sizes.followed(*epsilon_, accepted / proposals);
  }
  __syncthreads();
}

template <int NT, Math math>
__device__ void Block<NT, math>::place(const double* from, bool lost_at_zero) {
  for (int i = threadIdx.x; i < space_.latent * NC; i += threads) {
    const int chain = i % NC, d = i / NC;
    const float z = lost_at_zero && value_[chain] == -infinity ? 0.0f : static_cast<float>(from[i]);
    shared_[plan_.z + chain * plan_.z_stride + d] = rounded<math>(z);
    if (lost_at_zero && rank_ == 0 && real(chain))
      space_.chains.input[run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * space_.ld_latent + d] = z;
  }
  __syncthreads();
}

template <int NT, Math math>
__device__ void Block<NT, math>::write_refined() {
  if (rank_ != 0) return;
  const ChainArrays chains = space_.chains.of(run_);
  for (int i = threadIdx.x; i < space_.latent * NC; i += threads) {
    const int chain = i % NC, d = i / NC;
    if (real(chain)) chains.z[static_cast<std::size_t>(first_ + chain) * space_.latent + d] = z_[i];
  }
  for (int chain = threadIdx.x; chain < NC; chain += threads) {
    if (!real(chain)) continue;
    chains.value[first_ + chain] = value_[chain];
    chains.acceptance[first_ + chain] = acceptance_[chain];
    chains.proposals[first_ + chain] = proposals_[chain];
    chains.nonfinite[first_ + chain] = nonfinite_[chain];
  }
  if (threadIdx.x == 0 && first_ == 0 && spec_.adapt == Adapt::inside) space_.of(space_.state, run_)->step_size = *epsilon_;
}

template <int NT, Math math>
__device__ void Block<NT, math>::run() {
  load();
  place(position_, false);
  cluster_.sync();  // all shared memory is set up before others write into it
  const int leaps = spec_.shape.leapfrog + spec_.shape.jitter, passes = 1 + spec_.steps * leaps + 1;
  for (int pass = 0; pass < passes; ++pass) {
    const bool records = pass + 1 == passes;
    const int step = (pass - 1) / leaps, index = (pass - 1) % leaps + 1;
    evaluate(pass == 0 || index >= spec_.shape.leapfrog - spec_.shape.jitter, records);
    if (records) break;
    if (pass == 0) {
      begin_chains();
      if (spec_.steps > 0) draw_momenta(0);
    } else {
      leap(index);
      if (index < leaps) continue;
      accept(static_cast<std::uint32_t>(step));
      if (step + 1 < spec_.steps) draw_momenta(static_cast<std::uint32_t>(step + 1));
      if (spec_.adapt == Adapt::inside && step < spec_.adapting) meet(step);
    }
    if (pass + 2 < passes) {
      start_trajectory();
    } else {
      write_refined();
      place(z_, true);
    }
  }
  cluster_.sync();  // nobody leaves while others may write to it
}

#endif

template <int NT, Math math>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  const int cluster = static_cast<int>(blockIdx.x) / spec.plan.cluster;
  Block<NT, math> block(space, spec, shared, first_run + cluster / spec.clusters, cluster % spec.clusters * 8 * NT);
  block.run();
#endif
}

using Kernel = void (*)(Space, TrajectorySpec, int);

template <Math math>
Kernel kernel_of(int chains) {
  switch (chains) {
    case 8: return trajectory<1, math>;
    case 16: return trajectory<2, math>;
    case 32: return trajectory<4, math>;
    default: return nullptr;
  }
}
Kernel kernel_of(int chains, Math math) {
  return math == Math::tf32 ? kernel_of<Math::tf32>(chains) : kernel_of<Math::fp32>(chains);
}

// A stride of at least `least` that is 4 more than a multiple of 8 (fragments of single words), or 8 more than one of 32
// (fragments of pairs): a warp's fragment touches every bank once.
int odd_stride(int least) { return round_up(least + 4, 8) - 4; }
int pair_stride(int least) { return round_up(least > 8 ? least - 8 : 0, 32) + 8; }

class Layouter {
 public:
  int take(int floats) {
    const int at = size_;
    size_ += round_up(floats, 4);
    return at;
  }
  int size() const { return size_; }

 private:
  int size_ = 0;
};

TrajectoryPlan layout(const Net& net, int chains, int cluster) {
  TrajectoryPlan plan;
  plan.cluster = cluster;
  plan.chains = chains;
  const int last = net.depth - 1, latent = net.inputs();
  Layouter place;
  for (int l = 0; l <= last; ++l) {
    const Layer& layer = net.layer[l];
    plan.slice[l] = ceil_div(layer.outputs, cluster);
    const int cols = l == 0 && last > 0 ? layer.outputs : plan.slice[l];
    plan.weight_stride[l] = odd_stride(cols);
    plan.weight[l] = place.take(round_up(layer.inputs, 8) * plan.weight_stride[l]);
  }
  int received = 0;
  for (int l = 0; l <= last; ++l) {
    plan.bias[l] = place.take(l == 0 && last > 0 ? net.layer[l].outputs : plan.slice[l]);
    if (l == last) break;
    received = std::max(received, plan.slice[l]);
    plan.value_stride[l] = pair_stride(round_up(net.layer[l].outputs, 8));
    plan.value[l] = place.take(chains * plan.value_stride[l]);
  }
  plan.z_stride = pair_stride(round_up(latent, 8));
  plan.z = place.take(chains * plan.z_stride);
  plan.x_stride = plan.slice[last] + 1;
  plan.x = place.take(chains * plan.x_stride);
  plan.residual_stride = odd_stride(round_up(plan.slice[last], 8));
  plan.residual = place.take(chains * plan.residual_stride);
  plan.slice_delta_stride = odd_stride(round_up(std::max(received, 1), 8));
  plan.slice_delta = place.take(chains * plan.slice_delta_stride);
  plan.delta_stride = odd_stride(round_up(last > 0 ? net.layer[0].outputs : 1, 8));
  plan.delta = place.take(chains * plan.delta_stride);
  plan.received_slice = received;
  plan.received = place.take(cluster * received * chains);
  plan.answer = place.take(2 * cluster * latent * chains);
  int scratch = 0;
  for (int l = 0; l <= last; ++l) {
    const int outputs = l == 0 && last > 0 ? net.layer[l].outputs : plan.slice[l];
    const auto need = [&](int rows, int k) { return parts_of(rows, k, chains) * 32 * row_pairs(rows) * chains; };
    // slices of the last blocks are shorter, which may mean more parts
    for (int k = 1; k <= outputs; ++k) scratch = std::max(scratch, need(net.layer[l].inputs, k));
    for (int rows = 1; rows <= outputs; ++rows) scratch = std::max(scratch, need(rows, net.layer[l].inputs));
  }
  plan.scratch = place.take(scratch);
  plan.doubles = round_up(place.size(), 4);
  const int doubles = 5 * latent * chains + (4 + warps + 2 * cluster) * chains + 1;
  plan.bytes = round_up(4 * plan.doubles + 8 * doubles + 4 * (4 * chains + 2), 16);
  for (int l = 0; l <= last; ++l) {  // fragments of the last rows read beyond the weights
    const int inputs = net.layer[l].inputs, outputs = l == 0 && last > 0 ? net.layer[l].outputs : plan.slice[l];
    const int rows = std::max(32 * row_pairs(inputs), round_up(inputs, 8));
    const int end = plan.weight[l] + rows * plan.weight_stride[l] + std::max(32 * row_pairs(outputs), round_up(outputs, 8));
    plan.bytes = std::max(plan.bytes, round_up(4 * end, 16));
  }
  return plan;
}

cudaLaunchConfig_t launch_of(const TrajectoryPlan& plan, int clusters, cudaLaunchAttribute& attribute, cudaStream_t stream) {
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
  const Kernel kernel = kernel_of(plan.chains, math);
  const bool fits =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.bytes) == cudaSuccess &&
      (plan.cluster <= 8 || cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess);
  if (!fits) cudaGetLastError();
  return fits;
}

}  // namespace

int resident_clusters(const TrajectoryPlan& plan, Math math) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = launch_of(plan, 1, attribute, nullptr);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel_of(plan.chains, math), &config) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return clusters;
}

std::optional<TrajectoryPlan> plan_trajectory(const Net& decoder, int batch, int chains, int blocks, Math math) {
  int device = 0, major = 0, most = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the device's generation");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  if (major < 9) return {};
  for (const int cluster : {8, 16, 4, 2, 1}) {
    if (blocks > 0 && cluster != blocks) continue;
    const TrajectoryPlan plan = layout(decoder, chains, cluster);
    if (plan.bytes > most || !prepare(plan, math)) continue;
    if (resident_clusters(plan, math) >= ceil_div(batch, chains)) return plan;
  }
  return {};
}

void launch_trajectory(const Space& space, const TrajectorySpec& spec, Math math, int first_run, int runs, cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = launch_of(spec.plan, runs * spec.clusters, attribute, stream);
  check(cudaLaunchKernelEx(&config, kernel_of(spec.plan.chains, math), space, spec, first_run), "starting a refinement");
}

}  // namespace hone::cuda
