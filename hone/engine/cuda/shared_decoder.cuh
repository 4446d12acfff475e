#pragma once

#include <algorithm>

#include "hone/engine/cuda/refinement.cuh"

namespace hone::cuda {

__host__ __device__ constexpr int steps_of(int k) { return (k + 7) / 8; }
__host__ __device__ constexpr int tiles_of(int rows) { return (rows + 15) / 16; }

// A warp's share of a split product.
struct WarpShare {
  int tile, begin, end;  // steps of k; none where begin = end
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// A block's part of any decoder whose weights fit the shared memory of a cluster, in tf32 or float32. The first layer
// is held whole (its values are computed by every block, since that costs less than waiting), the others by slices.
template <int depth, int NT, Math math>
class SharedDecoder {
 public:
  static constexpr int NC = 8 * NT, block_warps = warps, most_dims = 0, groups = 1;
  static constexpr bool keeps_first = false;

  __device__ SharedDecoder(const Space& space, const TrajectorySpec& spec, char* shared, int run, int first)
      : space_(space),
        spec_(spec),
        plan_(spec.plan.shared),
        shared_(reinterpret_cast<float*>(shared)),
        boxes_(reinterpret_cast<Mailbox*>(shared_ + plan_.boxes)),
        rank_(static_cast<int>(cooperative_groups::this_cluster().block_rank())),
        run_(run),
        first_(first) {}

  __device__ int rank() const { return rank_; }
  __device__ const ChainPlaces& places() const { return spec_.plan.places; }
  __device__ int point_stride() const { return space_.latent; }
  __device__ void load();
  __device__ void set_input(int chain, int d, float z) {
    shared_[plan_.z + chain * plan_.z_stride + d] = rounded<math>(z);
  }
  template <bool records>
  __device__ void evaluate(bool wants_value, const double* value);
  __device__ double gradient(int chain, int d) const {
    const int points = width(0) * NC;
    const float* answers = shared_ + plan_.answer + (parity_ ^ 1) * plan_.cluster * points + d * NC + chain;
    float sum = 0;
#pragma unroll 8
    for (int rank = 0; rank < plan_.cluster; ++rank) sum += answers[rank * points];
    return sum;
  }
  __device__ double log_likelihood_part(int chain, int part) const {
    return part < plan_.cluster ? received_values()[((parity_ ^ 1) * plan_.cluster + part) * NC + chain] : 0;
  }

 private:
  static constexpr int last = depth - 1;
  enum Box { values_box, sums_box, delta_box, answer_box, box_count = answer_box + 2 };  // two for answers, in turn

  __device__ int width(int l) const {  // of layer l's inputs; depth: of the pixels
    return l < depth ? spec_.decoder.layer[l].inputs : spec_.decoder.layer[last].outputs;
  }
  static __device__ constexpr bool whole(int l) { return l == 0 && last > 0; }
  __device__ int begin(int l) const { return whole(l) ? 0 : rank_ * plan_.slice[l]; }
  __device__ int count(int l) const {  // outputs of layer l that this block holds
    return whole(l) ? width(l + 1) : max(0, min(plan_.slice[l], width(l + 1) - begin(l)));
  }
  template <int l>
  __device__ int owner(int row) const {  // the block whose slice of layer l's outputs a row belongs to
    return plan_.slice[l] == 1 ? row
                               : static_cast<int>(__umulhi(static_cast<unsigned>(row), plan_.slice_reciprocal[l]));
  }
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  template <int l>
  __device__ float* recorded(float* const (&arrays)[max_layers], int chain, int unit) const {  // a number of the tape
    return arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * spec_.decoder.layer[l].ld +
           unit;
  }
  __device__ double* partial_values() const { return reinterpret_cast<double*>(shared_ + plan_.partial_values); }
  __device__ double* received_values() const { return reinterpret_cast<double*>(shared_ + plan_.received_values); }
  __device__ WarpShare* schedule() const { return reinterpret_cast<WarpShare*>(shared_ + plan_.schedule); }

  __device__ void make_schedule();
  template <bool forward>
  __device__ void tile_sums(const float* w, int stride, int row, int begin, int end, const float* b, int b_stride,
                            float (&c)[NT][4]) const;
  template <int l, bool forward, class Use>
  __device__ void product(int rows, int k, const float* b, int b_stride, Use use);
  template <int l, bool records>
  __device__ void forward_hidden();
  template <bool records>
  __device__ void compare(bool wants_value, const double* value);
  template <int l, bool records>
  __device__ void pass_down(const float* b, int b_stride);
  __device__ void record_first_delta();
  __device__ void answer(const float* b, int b_stride, bool wants_value);

  const Space& space_;
  const TrajectorySpec& spec_;
  const SharedPlan& plan_;
  float* shared_;
  Mailboxes<box_count> boxes_;
  int rank_, run_, first_, parity_ = 0;
};

template <int depth, int NT, Math math>
__device__ void SharedDecoder<depth, NT, math>::load() {
  auto* all = reinterpret_cast<float4*>(shared_);
  for (int i = threadIdx.x; i < plan_.bytes / 16; i += threads) all[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  const float* parameters = space_.parameters + run_ * space_.stride;
#pragma unroll
  for (int l = 0; l < depth; ++l) {
    const Layer& layer = spec_.decoder.layer[l];
    const int cols = count(l), from = begin(l), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* weights = parameters + layer.weight + from;
    float* w = shared_ + plan_.weight[l];
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
            if (row < layer.inputs && col < cols) w[row * plan_.weight_stride[l] + col] = rounded<math>(value[r][c]);
          }
      }
    if (layer.has_bias)
      for (int col = threadIdx.x; col < cols; col += threads)
        shared_[plan_.bias[l] + col] = parameters[layer.bias + from + col];
  }
  const float* x = space_.of(space_.x, run_);
#pragma unroll 4
  for (int chain = 0; chain < NC; ++chain)
    for (int col = threadIdx.x; real(chain) && col < count(last); col += threads)
      shared_[plan_.x + chain * plan_.x_stride + col] =
          x[static_cast<std::size_t>(first_ + chain) * space_.ld_pixels + begin(last) + col];
  make_schedule();
  boxes_.set_up();
}

// What every warp does in the products that are split, once and for all.
template <int depth, int NT, Math math>
__device__ void SharedDecoder<depth, NT, math>::make_schedule() {
  for (int i = threadIdx.x; i < 2 * depth * warps; i += threads) {
    const int l = i / (2 * warps), warp = i % warps;
    const bool forward = i / warps % 2 == 0;
    const ProductPlan how = forward ? plan_.forward[l] : plan_.backward[l];
    if (how.parts == 0) continue;
    int k = width(l);
    if (!forward) {
      const int outputs = width(l + 1);
      k = whole(l) ? outputs : max(0, min(plan_.slice[l], outputs - rank_ * plan_.slice[l]));
    }
    const int steps = steps_of(k), part = warp / how.tiles;
    schedule()[i] = part < how.parts
                        ? WarpShare{warp % how.tiles, steps * part / how.parts, steps * (part + 1) / how.parts}
                        : WarpShare{-1, 0, 0};
  }
}

// Sums over the k of steps [begin, end) for 16 rows. Weights (inputs, outputs) as they lie: forward, results are
// outputs and k the inputs; backward, results are inputs and k the outputs of the slice. Neighbouring k of a fragment
// differ between the two, so that both touch every bank once.
template <int depth, int NT, Math math>
template <bool forward>
__device__ void SharedDecoder<depth, NT, math>::tile_sums(const float* w, int stride, int row, int begin, int end,
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
template <int depth, int NT, Math math>
template <int l, bool forward, class Use>
__device__ void SharedDecoder<depth, NT, math>::product(int rows, int k, const float* b, int b_stride, Use use) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const float* w = shared_ + plan_.weight[l];
  const int stride = plan_.weight_stride[l];
  const ProductPlan how = forward ? plan_.forward[l] : plan_.backward[l];
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
  const WarpShare share = schedule()[(2 * l + (forward ? 0 : 1)) * warps + warp];
  const int part_size = 16 * how.tiles * NC;
  float* scratch = shared_ + plan_.scratch;
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

template <int depth, int NT, Math math>
template <int l, bool records>
__device__ void SharedDecoder<depth, NT, math>::forward_hidden() {
  constexpr int below = l == 0 ? 0 : l - 1;
  const int from = begin(l), stride = plan_.value_stride[l];
  const float* bias = shared_ + plan_.bias[l];
  float* values = shared_ + plan_.value[l];
  product<l, true>(count(l), width(l), shared_ + (l == 0 ? plan_.z : plan_.value[below]),
                   l == 0 ? plan_.z_stride : plan_.value_stride[below], [&](int row, int chain, float sum) {
                     const float h = rounded<math>(activate<math>(spec_.decoder.activation, sum + bias[row]));
                     float* place = values + chain * stride + from + row;
                     if constexpr (whole(l)) {
                       *place = h;
                     } else {
#pragma unroll 4
                       for (int rank = 0; rank < plan_.cluster; ++rank) send(place, boxes_[values_box], rank, h);
                     }
                     if constexpr (records)
                       if (real(chain) && (!whole(l) || owner<0>(row) == rank_))
                         *recorded<l>(spec_.tape.value, chain, from + row) = h;
                   });
  if constexpr (whole(l))
    __syncthreads();
  else
    boxes_.receive(values_box, width(l + 1) * NC * 4);
}

template <int depth, int NT, Math math>
template <bool records>
__device__ void SharedDecoder<depth, NT, math>::compare(bool wants_value, const double* value) {
  constexpr int below = last == 0 ? 0 : last - 1;
  const int rows = count(last), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* bias = shared_ + plan_.bias[last];
  const float* data = shared_ + plan_.x;
  float* residuals = shared_ + plan_.residual;
  float* log_p = shared_ + plan_.log_p;  // (NC, pixels of the slice): terms of log p(x | z), as x lies
  product<last, true>(rows, width(last), shared_ + (last == 0 ? plan_.z : plan_.value[below]),
                      last == 0 ? plan_.z_stride : plan_.value_stride[below], [&](int row, int chain, float sum) {
                        const float a = sum + bias[row];
                        const float x = data[chain * plan_.x_stride + row];
                        float r = residual<math>(spec_.density, a, x);
                        if (wants_value)
                          log_p[chain * plan_.x_stride + row] = log_probability<math>(spec_.density, a, x);
                        if constexpr (records) {
                          if (value[chain] == -infinity) r = 0;
                          if (real(chain)) *recorded<last>(spec_.tape.delta, chain, begin(last) + row) = r;
                        }
                        residuals[chain * plan_.residual_stride + row] = rounded<math>(r);
                      });
  __syncthreads();
  if (!wants_value) return;
  for (int chain = warp; chain < NC; chain += warps) {  // sums in an order of their own, one warp a chain
    double sum = 0;
    for (int row = lane; row < rows; row += 32) sum += log_p[chain * plan_.x_stride + row];
    sum = warp_sum(sum);
    if (lane == 0) partial_values()[chain] = sum;
  }
  __syncthreads();
}

// From ∂ / ∂a_{l+1}, as `b` (chain, unit of this block), to ∂ / ∂a_l: of layer 0 a partial sum for all its units, whose
// slopes every block knows; of others their owners' sums.
template <int depth, int NT, Math math>
template <int l, bool records>
__device__ void SharedDecoder<depth, NT, math>::pass_down(const float* b, int b_stride) {
  const int units = width(l + 1);
  const float* values = shared_ + plan_.value[l];
  if constexpr (l == 0) {
    float* deltas = shared_ + plan_.delta;
    product<1, false>(units, count(1), b, b_stride, [&](int row, int chain, float sum) {
      const float h = values[chain * plan_.value_stride[0] + row];
      deltas[chain * plan_.delta_stride + row] = rounded<math>(sum * slope<math>(spec_.decoder.activation, h));
    });
    __syncthreads();
    if constexpr (records) record_first_delta();
  } else {
    const int slice = plan_.slice[l], mine = count(l);
    float* received = shared_ + plan_.received + plan_.received_size;  // the other half is for layer 0
    product<l + 1, false>(units, count(l + 1), b, b_stride, [&](int row, int chain, float sum) {
      const int rank = owner<l>(row);
      send(received + (rank_ * slice + row - rank * slice) * NC + chain, boxes_[sums_box], rank, sum);
    });
    boxes_.receive(sums_box, plan_.cluster * mine * NC * 4);
    for (int i = threadIdx.x; i < mine * NC; i += threads) {
      const int row = i / NC, chain = i % NC;
      float sum = 0;
#pragma unroll 8
      for (int rank = 0; rank < plan_.cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
      sum *= slope<math>(spec_.decoder.activation, values[chain * plan_.value_stride[l] + begin(l) + row]);
      shared_[plan_.slice_delta[l] + chain * plan_.slice_delta_stride[l] + row] = rounded<math>(sum);
      if constexpr (records)
        if (real(chain)) *recorded<l>(spec_.tape.delta, chain, begin(l) + row) = sum;
    }
    __syncthreads();
  }
}

// The first layer's deltas are sums over the cluster: each block makes its slice of them.
template <int depth, int NT, Math math>
__device__ void SharedDecoder<depth, NT, math>::record_first_delta() {
  const int slice = plan_.slice[0], units = width(1);
  float* received = shared_ + plan_.received;
  for (int i = threadIdx.x; i < units * NC; i += threads) {
    const int row = i / NC, chain = i % NC, rank = owner<0>(row);
    send(received + (rank_ * slice + row - rank * slice) * NC + chain, boxes_[delta_box], rank,
         shared_[plan_.delta + chain * plan_.delta_stride + row]);
  }
  const int mine = max(0, min(slice, units - rank_ * slice));
  boxes_.receive(delta_box, plan_.cluster * mine * NC * 4);
  for (int i = threadIdx.x; i < mine * NC; i += threads) {
    const int row = i / NC, chain = i % NC;
    float sum = 0;
    for (int rank = 0; rank < plan_.cluster; ++rank) sum += received[(rank * slice + row) * NC + chain];
    if (real(chain)) *recorded<0>(spec_.tape.delta, chain, rank_ * slice + row) = sum;
  }
}

// This block's part of ∇_z log p(x | z) and, where wanted, of log p(x | z) → all blocks.
template <int depth, int NT, Math math>
__device__ void SharedDecoder<depth, NT, math>::answer(const float* b, int b_stride, bool wants_value) {
  const int points = width(0) * NC;
  float* answers = shared_ + plan_.answer + (parity_ * plan_.cluster + rank_) * points;
  const Mailbox& box = boxes_[answer_box + parity_];
  product<0, false>(width(0), count(0), b, b_stride, [&](int row, int chain, float sum) {
#pragma unroll 4
    for (int rank = 0; rank < plan_.cluster; ++rank) send(answers + row * NC + chain, box, rank, sum);
  });
  double* values = received_values() + (parity_ * plan_.cluster + rank_) * NC;
  for (int i = threadIdx.x; wants_value && i < NC * plan_.cluster; i += threads)
    send(values + i % NC, box, i / NC, partial_values()[i % NC]);
  boxes_.receive(answer_box + parity_, plan_.cluster * (points * 4 + (wants_value ? NC * 8 : 0)));
  parity_ ^= 1;
}

template <int depth, int NT, Math math>
template <bool records>
__device__ void SharedDecoder<depth, NT, math>::evaluate(bool wants_value, const double* value) {
  if constexpr (depth > 1) forward_hidden<0, records>();
  if constexpr (depth > 2) forward_hidden<1, records>();
  compare<records>(wants_value, value);
  const float* b = shared_ + plan_.residual;
  int stride = plan_.residual_stride;
  if constexpr (depth > 2) {
    pass_down<1, records>(b, stride);
    b = shared_ + plan_.slice_delta[1];
    stride = plan_.slice_delta_stride[1];
  }
  if constexpr (depth > 1) {
    pass_down<0, records>(b, stride);
    b = shared_ + plan_.delta;
    stride = plan_.delta_stride;
  }
  if constexpr (!records) answer(b, stride, wants_value);
}

#endif

}  // namespace hone::cuda
