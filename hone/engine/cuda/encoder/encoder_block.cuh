#pragma once

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/device/mma.cuh"
#include "hone/engine/cuda/encoder/datum.cuh"
#include "hone/engine/cuda/encoder/encoder_shape.cuh"

namespace hone::cuda {

// Code that runs once per iteration takes as long as fetching its instructions, 10 cycles each. So it is kept short:
// loops are not unrolled, shared code is called, and the host computes everything that depends on shapes alone.

static __device__ __noinline__ void clear_floats(float* from, int count) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += threads) from[i] = 0;
}

// Copies `count` rows of `width` floats (a multiple of four) to shared memory, each by 2^log_sharing threads. They have
// arrived after `wait_for_copies` and a barrier.
template <int log_sharing>
static __device__ __noinline__ void copy_rows(float* to, int stride, const float* from, int ld, int width, int count) {
  const int col = 4 * (this_thread() & ((1 << log_sharing) - 1));
#pragma unroll 1
  for (int r = this_thread() >> log_sharing; r < count; r += threads >> log_sharing)
#pragma unroll 1
    for (int c = col; c < width; c += 4 << log_sharing)
      copy_async(to + r * stride + c, from + static_cast<std::size_t>(r) * ld + c, true);
}

// Copies of neighbouring floats to shared memory by one thread; others wait at the box.
class Copies {
 public:
  explicit __device__ Copies(const Mailbox& box) : box_(box) {}
  __device__ __forceinline__ void operator()(float* to, const float* from, int count) {
    if (count <= 0) return;
    copy_bytes(to, from, 4 * count, box_);
    bytes_ += 4 * count;
  }
  __device__ int bytes() const { return bytes_; }

 private:
  const Mailbox& box_;
  int bytes_ = 0;
};

// Σ_k weights[unit · by_unit + k · by_k] x(row, k), in parts: 2^shift warps share a tile of units. → (part, tile, lane,
// 4), as a product leaves them, with a barrier.
static __device__ __noinline__ void multiply_parts(int tiles, int all_k, int shift, const float* x, int stride,
                                                   const float* weights, int by_unit, int by_k, float* sums) {
  constexpr int unit_tile = EncoderSplit::unit_tile;
  const int lane = this_lane(), g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int task = this_warp(); task < tiles << shift; task += warps) {
    const int first = 8 * (task & ((1 << shift) - 1));
    const float* w = weights + ((task >> shift) * unit_tile + g) * by_unit + (first + t) * by_k;
    const float* b = x + g * stride + first + t;
    Sums c = {};
#pragma unroll 2
    for (int k = first; k < all_k; k += 8 << shift) {
      const Operand<Math::tf32, 4> left(to_tf32(w[0]), to_tf32(w[8 * by_unit]), to_tf32(w[4 * by_k]),
                                        to_tf32(w[8 * by_unit + 4 * by_k]));
      multiply_add<Math::tf32>(c, left, Operand<Math::tf32, 2>(to_tf32(b[0]), to_tf32(b[4])));
      w += (8 << shift) * by_k;
      b += 8 << shift;
    }
    reinterpret_cast<Sums*>(sums)[((task & ((1 << shift) - 1)) * tiles + (task >> shift)) * 32 + lane] = c;
  }
  __syncthreads();
}
// A number, or four, of what `multiply_parts` left: `size` of them per part.
template <class T>
static __device__ __forceinline__ T sum_of_parts(const T* parts, int size, int shift, int i) {
  T sum = parts[i];
#pragma unroll 1
  for (int part = 1; part < 1 << shift; ++part) sum = sum + parts[part * size + i];
  return sum;
}

// A block's share of the encoder's layers, forward from the first layer's sums, and back, for a cluster's eight data,
// one of which is the block's own. All threads of all blocks of the cluster call every method. Products are in tf32, as
// in the refinement in whose kernel this runs.
class EncoderBlock : EncoderSplit {
 public:
  __device__ EncoderBlock(const Space& space, const EncoderSpec& encoder, float* shared, int rank, int row0, int run)
      : space_(space),
        encoder_(encoder),
        shared_(shared),
        rank_(rank),
        net_(rank / parts),
        index_(rank % parts),
        row0_(row0),
        run_(run),
        count_(min(rows, space.batch - row0)) {}

  // of the boxes, at the beginning
  __device__ void set_up() const {
    Mailboxes<box_count>(&box(received_box)).set_up();
    __syncthreads();
  }
  __device__ Mailbox& box(Box which) const { return reinterpret_cast<Mailbox*>(shared_)[which]; }
  // Four parts of the first layer's sums, for four neighbouring units and a row.
  struct FirstSums {
    float4 part[4], bias;
  };
  // Computes the layers above the first, then draws. `begin_encode` starts the copies and loads the first layer's first
  // sums to registers; call no function before `encode` takes them, since the call would wait for them. `draws`:
  // (rows, D), then the block's own DrawnDatum. `encode` calls later(0) when the thread's own copies have arrived, and
  // later(1) when registers are free again.
  __device__ FirstSums begin_encode(const EncodeShape& at) const {
    const Layer &top = layer(2), &inner = layer(1);
    const int begin = index_ * at.most, own = min(at.most, top.inputs - begin);  // may be < 0
    const float* weights = parameters(net_);
    copy_rows<4>(shared_ + at.weight.at, at.weight.stride, weights + inner.weight + begin, inner.ld,
                 min(at.most, inner.ld - begin), inner.inputs);
    if (threadIdx.x == copier) {
      Copies copy(box(encode_box));
      copy(shared_ + at.bias, weights + inner.bias + begin, round_up(own, 4));
      copy(shared_ + at.top_weight.at, weights + top.weight + static_cast<std::size_t>(begin) * top.ld, own * top.ld);
      for (int of_net = 0; of_net < nets; ++of_net)
        copy(shared_ + at.top_bias.at + of_net * at.top_bias.stride, parameters(of_net) + top.bias, at.top_bias.stride);
      const double* noise = space_.of(space_.noise, run_) + static_cast<std::size_t>(row0_) * space_.latent;
      copy(shared_ + at.noise, reinterpret_cast<const float*>(noise), round_up(2 * count_ * space_.latent, 4));
      box(encode_box).expect(copy.bytes());
    }
    return first_sums(4 * FirstRow().column, 0);
  }
  // A block sums its own units' part of the last layer and sends it to all blocks; then all draw.
  template <class Later>
  __device__ void encode(const EncodeShape& at, const FirstSums& begun, double* draws, Later later) const {
    take_first(at, begun);
    __syncwarp();
    arrive_at_meeting();
    clear_beyond(at);
    wait_for_copies();
    box(encode_box).wait(0);
    later(std::integral_constant<int, 0>());
    __syncthreads();
    encode_inner(at);
    multiply_parts(at.top.tiles, at.top.k, at.top.shift, shared_ + at.h.at, at.h.stride, shared_ + at.top_weight.at, 1,
                   at.top_weight.stride, shared_ + at.sums);
    end_meeting();  // the others are there
    later(std::integral_constant<int, 1>());
    send_top(at);
    draw_rows(at, draws);
  }
  __device__ DrawnDatum own(double* draws) const { return {draws + rows * space_.latent, space_.latent}; }
  // By a thread that waits anyway: global memory takes long.
  __device__ void note_baselines(const ObjectiveSpec& objective, double* draws) const {
    if (threadIdx.x != copier || rank_ >= count_) return;
    const int datum = space_.of(space_.datum, run_)[own_column()];
#pragma unroll 1
    for (int term = 0; term < 2; ++term) own(draws).baseline[term] = baseline_of(space_, objective, run_, term, datum);
  }

  // The objective's gradient and, from it, the deltas of the hidden layers. A block asks datum(column) for its own
  // datum and sends the result to the others. Between `begin_ascend` and `ascend` all blocks must have met, and what
  // they wrote must be visible.
  __device__ void begin_ascend(const AscendShape& at) const {
    const Layer &top = layer(2), &first = layer(0), &inner = layer(1);
    const int begin = index_ * at.most, own = min(at.most, first.outputs - begin);  // may be < 0
    const float* weights = parameters(net_);
    if (threadIdx.x == copier) {
      Copies copy(box(ascend_box));
      copy(shared_ + at.top_weight.at, weights + top.weight, top.inputs * top.ld);
      copy(shared_ + at.weight.at, weights + inner.weight + static_cast<std::size_t>(begin) * inner.ld, own * inner.ld);
      box(ascend_box).expect(copy.bytes());
    }
    copy_rows<6>(shared_ + at.first_value.at, at.first_value.stride, of(encoder_.tape.value, 0, net_) + begin, first.ld,
                 min(at.most, first.ld - begin), count_);
    clear(at.deltas, rows * at.deltas_stride);
    clear(at.top_weight.at + top.inputs * top.ld, pad);
    clear(at.weight.at + max(own, 0) * inner.ld, pad);
  }
  // The layer below the last is small: every block computes all of its deltas.
  template <class Source>
  __device__ void ascend(const AscendShape& at, const ObjectiveSpec& objective, Source datum) const {
    const int latent = space_.latent, stride = at.deltas_stride;
    const Layer &top = layer(2), &below = layer(1), &first = layer(0);
    const Activation activation = encoder_.net.activation;
    const float* values = of(encoder_.tape.value, 1, net_);  // neighbours, as (rows, ld)
#pragma unroll 1
    for (int i = 4 * this_thread(); i < count_ * below.ld; i += 4 * threads)
      copy_async(shared_ + at.value.at + i, values + i, true);
    if (warp_ == 0 && rank_ < count_)
      ascend_datum(space_, objective, run_, own_column(), datum(own_column()), lane_, [&](int d, float mean, float sd) {
        const float* place = shared_ + at.deltas + rank_ * stride + d;
#pragma unroll 1
        for (int to = 0; to < blocks; ++to) send(place, box(deltas_box), to, to < parts ? mean : sd);
      });
    if (threadIdx.x == 0) box(deltas_box).expect(count_ * latent * static_cast<int>(sizeof(float)));
    wait_for_copies();
    box(ascend_box).wait(0);
    box(deltas_box).wait(0);
    __syncthreads();
    if (index_ == 0 && warp_ < count_) {
      float* to = of(encoder_.tape.delta, 2, net_) + warp_ * top.ld;
#pragma unroll 1
      for (int d = lane_; d < latent; d += 32) to[d] = shared_[at.deltas + warp_ * stride + d];
    }
    const int units = top.inputs, wide = at.delta.stride;
    float* deltas = of(encoder_.tape.delta, 1, net_);
    multiply_rows(at.top, {at.deltas, stride}, at.top_weight, at.top_weight.stride, 1, at.sums,
                  [&](int unit, int row, float sum) {
                    if (unit >= wide) return;
                    const bool there = unit < units && row < count_;
                    const float value = there ? shared_[at.value.at + row * at.value.stride + unit] : 0.0f;
                    const float delta = there ? sum * derivative<Math::tf32>(activation, value) : 0.0f;
                    shared_[at.delta.at + row * wide + unit] = delta;
                    if (there && unit / unit_tile % parts == index_) deltas[row * below.ld + unit] = delta;
                  });
    __syncthreads();
    const int begin = index_ * at.most, own = min(at.most, first.outputs - begin);
    deltas = of(encoder_.tape.delta, 0, net_) + begin;
    multiply_rows(at.inner, at.delta, at.weight, at.weight.stride, 1, at.sums, [&](int unit, int row, float sum) {
      if (unit >= own || row >= count_) return;
      const float value = shared_[at.first_value.at + row * at.first_value.stride + unit];
      deltas[row * first.ld + unit] = sum * derivative<Math::tf32>(activation, value);
    });
  }

 private:
  static constexpr int copier = threads - 32;  // a thread of the last warp

  __device__ void clear(int from, int count) const { clear_floats(shared_ + from, count); }
  // finish(unit, row, Σ_k weights[unit · by_unit + k · by_k] x(row, k)) for all units of the tiles. Where x is not 0
  // from k to the next multiple of eight, the weights are. All threads; a barrier must follow before `sums` is used
  // again.
  template <class Finish>
  __device__ __forceinline__ void multiply_rows(const RowProduct& p, const Block& x, const Block& weights, int by_unit,
                                                int by_k, int sums, Finish finish) const {
    multiply_parts(p.tiles, p.k, p.shift, shared_ + x.at, x.stride, shared_ + weights.at, by_unit, by_k,
                   shared_ + sums);
    const int size = p.tiles * unit_tile * rows;
#pragma unroll 1
    for (int i = threadIdx.x; i < size; i += threads) {
      const int tile = i / (unit_tile * rows), place = i % (unit_tile * rows);
      finish(tile * unit_tile + place / 16 + 8 * (place % 4 / 2), 2 * (place / 4 % 4) + place % 2,
             sum_of_parts(shared_ + sums, size, p.shift, i));
    }
  }
  __device__ int own_column() const { return row0_ + rank_; }
  // Where a product leaves the sum of a unit and row.
  static __device__ int sum_place(int unit, int row) {
    const int g = unit % 8, half = unit / 8 % 2;
    return (unit / unit_tile * 32 + 4 * g + row / 2) * 4 + 2 * half + row % 2;
  }
  __device__ const Layer& layer(int l) const { return encoder_.net.layer[l]; }
  // The row and the first column of the first layer's values that a thread copies.
  struct FirstRow {
    static constexpr int together = threads / rows;  // that copy a row
    const int row = this_thread() / together, column = this_thread() % together;
  };
  // Clears what products read and no copy fills.
  __device__ void clear_beyond(const EncodeShape& at) const {
    const Layer& top = layer(2);
    const int units = max(min(at.most, top.inputs - index_ * at.most), 0);
    const int k = layer(1).inputs, by_k = at.weight.stride;
    clear(at.weight.at + k * by_k, (round_up(k, 8) - k) * by_k);
    const FirstRow my;
#pragma unroll 1
    for (int c = (my.row < count_ ? layer(0).ld : 0) + my.column; c < at.x.stride; c += my.together)
      shared_[at.x.at + my.row * at.x.stride + c] = 0;
    clear(at.top_weight.at + units * top.ld, (round_up(at.most, 8) - units) * top.ld + pad);
  }
  // parts from `part` on, 0 beyond
  __device__ FirstSums first_sums(int c, int part) const {
    FirstSums sums = {};
    const int ld = layer(0).ld, row = FirstRow().row;
    if (row >= count_ || c >= ld) return sums;
    const auto four = [](const float* from) { return *reinterpret_cast<const float4*>(from); };
    const FirstLayerSums& first = encoder_.first;
    const float* from =
        first.sums + run_ * space_.stride + (static_cast<std::size_t>(net_) * space_.batch + row0_ + row) * ld + c;
    for (int i = 0; i < 4; ++i)
      if (part + i < first.parts) sums.part[i] = four(from + (part + i) * first.of_part);
    if (part == 0) sums.bias = four(parameters(net_) + layer(0).bias + c);
    return sums;
  }
  // The first layer's values that the block needs. Those of the units whose deltas it will compute also go to the tape.
  __device__ void take_first(const EncodeShape& at, const FirstSums& begun) const {
    const FirstRow my;
    const int ld = layer(0).ld, most = owned(layer(0).outputs);
    float* values = of(encoder_.tape.value, 0, net_) + my.row * ld;
#pragma unroll 1
    for (int c = 4 * my.column; c < ld && my.row < count_; c += 4 * my.together) {
      float4 value;
#pragma unroll 1
      for (int part = 0; part < encoder_.first.parts; part += 4) {
        const FirstSums sums = part == 0 && c == 4 * my.column ? begun : first_sums(c, part);
        if (part == 0) value = sums.bias;
        value = value + (sums.part[0] + sums.part[1]) + (sums.part[2] + sums.part[3]);
      }
      const auto finished = [&](int i, float sum) {
        return c + i < layer(0).outputs ? activate<Math::tf32>(encoder_.net.activation, sum) : 0.0f;
      };
      value = {finished(0, value.x), finished(1, value.y), finished(2, value.z), finished(3, value.w)};
      if (c >= index_ * most && c < (index_ + 1) * most) *reinterpret_cast<float4*>(values + c) = value;
      *reinterpret_cast<float4*>(shared_ + at.x.at + my.row * at.x.stride + c) = value;
    }
  }
  // The layer between the first and the last: a block computes its own units.
  __device__ __forceinline__ void encode_inner(const EncodeShape& at) const {
    const int begin = index_ * at.most, own = min(at.most, layer(2).inputs - begin), stride = at.h.stride;
    float* value = of(encoder_.tape.value, 1, net_) + begin;
    multiply_rows(at.inner, at.x, at.weight, 1, at.weight.stride, at.sums, [&](int unit, int row, float sum) {
      const bool there = unit < own && row < count_;
      const float y = there ? activate<Math::tf32>(encoder_.net.activation, sum + shared_[at.bias + unit]) : 0.0f;
      if (unit < stride) shared_[at.h.at + row * stride + unit] = y;
      if (there) value[row * layer(1).ld + unit] = y;
    });
    __syncthreads();
  }
  // A block's part of the last layer's sums → all blocks.
  __device__ __forceinline__ void send_top(const EncodeShape& at) const {
#pragma unroll 1
    for (int i = threadIdx.x; i < 32 * at.top.tiles; i += threads) {
      const float4 sums =
          sum_of_parts(reinterpret_cast<const float4*>(shared_ + at.sums), 32 * at.top.tiles, at.top.shift, i);
      const float* place = shared_ + at.received + rank_ * at.received_size + 4 * i;
#pragma unroll 1
      for (int to = 0; to < blocks; ++to) send(remote_address(place, to), remote_address(&box(received_box), to), sums);
    }
    if (threadIdx.x == 0) box(received_box).expect(blocks * at.received_size * static_cast<int>(sizeof(float)));
    box(received_box).wait(0);
  }
  // q's draws of all rows, from the last layer's sums.
  __device__ __forceinline__ void draw_rows(const EncodeShape& at, double* draws) const {
    constexpr int sharing = warps / rows;  // warps of a row
    const int row = warp_ % rows, latent = space_.latent;
    if (row >= count_) return;
#pragma unroll 1
    for (int d = lane_ + warp_ / rows * 32; d < latent; d += 32 * sharing) {
      float raw[nets];
      for (int of_net = 0; of_net < nets; ++of_net) {
        raw[of_net] = shared_[at.top_bias.at + of_net * at.top_bias.stride + d];
        for (int p = 0; p < parts; ++p)
          raw[of_net] += shared_[at.received + (of_net * parts + p) * at.received_size + sum_place(d, row)];
        if (rank_ == 0) of(encoder_.tape.value, 2, of_net)[row * layer(2).ld + d] = raw[of_net];
      }
      const double noise = reinterpret_cast<const double*>(shared_ + at.noise)[row * latent + d];
      const Draw draw(raw[0], raw[1], noise);
      draws[row * latent + d] = draw.z;  // the block that refines a chain writes where it ends
      if (row == rank_) {
        const DrawnDatum mine = own(draws);
        mine.mean[d] = draw.mean;
        mine.sd[d] = draw.sd;
        mine.noise[d] = noise;
        mine.raw_sd[d] = raw[1];
      }
      if (rank_ == 0) draw.place(space_, run_, row0_ + row, d);
    }
  }
  __device__ const float* parameters(int of_net) const {
    return space_.parameters + run_ * space_.stride + of_net * encoder_.net_parameters;
  }
  // The tape's values or deltas of layer l, from the block's first row on.
  __device__ float* of(float* const (&arrays)[max_layers], int l, int of_net) const {
    return arrays[l] + run_ * space_.stride +
           (static_cast<std::size_t>(of_net) * space_.batch + row0_) * encoder_.net.layer[l].ld;
  }

  const Space& space_;
  const EncoderSpec& encoder_;
  float* shared_;
  int rank_, net_, index_, row0_, run_, count_;  // index: among the blocks of the network; count: its rows
  const int warp_ = this_warp(), lane_ = this_lane();
};

}  // namespace hone::cuda
