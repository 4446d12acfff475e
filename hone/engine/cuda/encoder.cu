#include <algorithm>

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/datum.cuh"
#include "hone/engine/cuda/padded_parameters.hpp"
#include "hone/engine/cuda/trajectory.cuh"

namespace hone::cuda {
namespace {

// Kernels that run once an iteration are short, and much of their time goes into fetching instructions: so there are few
// of them here, hardly anything is divided, and what a shape implies is computed by the host.

// Floats from a row to the next where fragments lie along it, and where they lie across: every bank once.
constexpr int stride_along(int k) { return round_up(k, 8) + 4; }
constexpr int stride_across(int units) { return round_up(units, 16) + 8; }

// A matrix in shared memory: rows `stride` floats apart, of so many that are copied together.
struct Block {
  int at = 0, stride = 0;
  int chunks = 1, rows_at_once = 0;  // 16 bytes each; rows that all threads copy at a time

  Block() = default;
  Block(int place, int row_stride, int width)
      : at(place), stride(row_stride), chunks(std::max(1, round_up(width, 4) / 4)), rows_at_once(threads / chunks) {}
};

// Places in shared memory, in floats; sizes are asked for before it is known whether they fit.
class FloatPlaces {
 public:
  int take(long long floats) {
    const long long at = size_;
    size_ += (floats + 3) / 4 * 4;
    return static_cast<int>(at);
  }
  Block take(int count, int stride, int width) { return {take(static_cast<long long>(count) * stride), stride, width}; }
  long long bytes() const { return size_ * static_cast<long long>(sizeof(float)); }

 private:
  long long size_ = 0;
};

// Some rows of the batch go through the layers above the first together, by eight blocks: four for each of the encoder's
// two networks, of which each owns a range of a layer's units. A product is units × rows, so that few rows are no waste.
constexpr int rows = 8, nets = 2, parts = 4, blocks = nets * parts, unit_tile = 16;
constexpr int tiles_of(int units) { return ceil_div(units, unit_tile); }
constexpr int owned(int units) { return round_up(ceil_div(units, parts), 4); }  // by a block at most

// units × k times k × rows: 2^shift warps share the k of a tile of units.
struct RowProduct {
  int tiles = 0, k = 0, shift = 0;

  RowProduct() = default;
  RowProduct(int units, int k_) : tiles(tiles_of(units)), k(k_) {
    while (tiles << (shift + 1) <= warps && 8 << (shift + 1) <= round_up(k, 8)) ++shift;
  }
  int sums() const { return tiles * unit_tile * rows << shift; }
};

// The first layer: a block has 16 rows of the batch, 32 units and all of k, which its warps share.
constexpr int first_rows = 16, first_units = 32;

struct FirstShape {
  Block x, weight;
  int sums;
  long long bytes;

  explicit FirstShape(const Net& net) {
    const int k = net.layer[0].inputs;
    FloatPlaces places;
    x = places.take(first_rows, stride_along(k), padded_width(k));
    weight = places.take(round_up(k, 8), stride_across(first_units), first_units);
    sums = places.take(warps * first_rows * stride_across(first_units));
    bytes = places.bytes();
  }
};

struct EncodeShape {
  int most;  // units below the last layer that a block owns at most
  RowProduct inner, top;
  Block x, weight, h, top_weight;
  int bias, sums, received, received_size;
  long long bytes;

  EncodeShape(const Net& net, int latent) {
    const Layer& last = net.layer[net.depth - 1];
    most = owned(last.inputs);
    top = RowProduct(latent, most);
    FloatPlaces places;
    if (net.depth == 3) {
      const int k = net.layer[1].inputs;
      inner = RowProduct(most, k);
      x = places.take(rows, stride_along(k), padded_width(k));
      weight = places.take(round_up(k, 8), stride_across(most), most);
    }
    bias = places.take(most);
    h = places.take(rows, stride_along(most), most);
    top_weight = places.take(round_up(most, 8) + 1, std::max(last.ld, unit_tile), last.ld);
    sums = places.take(std::max(inner.sums(), top.sums()));
    received_size = rows * tiles_of(latent) * unit_tile;
    received = places.take(blocks * received_size);
    bytes = places.bytes();
  }
};

struct AscendShape {
  int most;  // units of the first layer that a block owns at most
  RowProduct top, inner;
  Block top_weight, value, weight, first_value;
  int deltas, deltas_stride, delta, sums;
  long long bytes;

  AscendShape(const Net& net, int latent) {
    const Layer& last = net.layer[net.depth - 1];
    const int units = last.inputs, wide = stride_along(units);
    most = owned(net.layer[0].outputs);
    top = RowProduct(units, latent);
    FloatPlaces places;
    deltas_stride = stride_along(latent);
    deltas = places.take(nets * rows * deltas_stride);
    top_weight = places.take(top.tiles * unit_tile, stride_along(latent), last.ld);
    value = places.take(rows, wide, padded_width(units));
    delta = places.take(rows * wide);
    if (net.depth == 3) {
      inner = RowProduct(most, units);
      weight = places.take(tiles_of(most) * unit_tile, wide, padded_width(units));
      first_value = places.take(rows, stride_along(most), most);
    }
    sums = places.take(std::max(inner.sums(), top.sums()));
    bytes = places.bytes();
  }
};

extern __shared__ __align__(16) float shared[];

// `count` rows of the first `width` floats, a multiple of four, to shared memory: there after `wait_copies` and a
// barrier.
__device__ void copy_block(const Block& to, const float* from, int ld, int width, int count) {
  const int row = static_cast<int>(threadIdx.x) / to.chunks, col = 4 * (static_cast<int>(threadIdx.x) - row * to.chunks);
  if (row >= to.rows_at_once || col >= width) return;
#pragma unroll 1
  for (int r = row; r < count; r += to.rows_at_once)
    copy_async(shared + to.at + r * to.stride + col, from + static_cast<std::size_t>(r) * ld + col, true);
}
__device__ void clear(int from, int count) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += threads) shared[from + i] = 0;
}
// 0 in columns [first, stride) of so many rows
__device__ void clear_columns(const Block& of, int first, int count) {
  const int col = first + static_cast<int>(threadIdx.x) % 8;  // eight threads a row
#pragma unroll 1
  for (int r = static_cast<int>(threadIdx.x) / 8; r < count; r += threads / 8)
#pragma unroll 1
    for (int c = col; c < of.stride; c += 8) shared[of.at + r * of.stride + c] = 0;
}
// A block's rows of the batch, of `all`; 0 where there are none and beyond the width.
__device__ void copy_rows(const Block& to, const float* from, int ld, int width, int count, int all) {
  width = max(width, 0);
  copy_block(to, from, ld, width, count);
  clear_columns(to, width, count);
  clear(to.at + count * to.stride, (all - count) * to.stride);
}

// finish(unit, row, Σ_k weights[unit · by_unit + k · by_k] x(row, k)) for all units of the tiles. x is (rows,
// stride_along(k)) and, as the weights, 0 from k to the next multiple of eight. All threads; a barrier must follow before
// `sums` is used again.
template <Math math, class Finish>
__device__ __forceinline__ void multiply_rows(const RowProduct& p, int x, int stride, int weights, int by_unit, int by_k,
                                              int sums, Finish finish) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int task = static_cast<int>(threadIdx.x) / 32; task < p.tiles << p.shift; task += warps) {
    const int first = 8 * (task & ((1 << p.shift) - 1));
    const float* w = shared + weights + ((task >> p.shift) * unit_tile + g) * by_unit + (first + t) * by_k;
    const float* b = shared + x + g * stride + first + t;
    float c[4] = {};
#pragma unroll 2
    for (int k = first; k < p.k; k += 8 << p.shift) {
      Operand<math, 4> left;
      Operand<math, 2> right;
      left.set(0, rounded<math>(w[0]));
      left.set(1, rounded<math>(w[8 * by_unit]));
      left.set(2, rounded<math>(w[4 * by_k]));
      left.set(3, rounded<math>(w[8 * by_unit + 4 * by_k]));
      right.set(0, rounded<math>(b[0]));
      right.set(1, rounded<math>(b[4]));
      multiply_add<math>(c, left, right);
      w += (8 << p.shift) * by_k;
      b += 8 << p.shift;
    }
    reinterpret_cast<float4*>(shared + sums)[task * 32 + lane] = make_float4(c[0], c[1], c[2], c[3]);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < p.tiles * unit_tile * rows; i += threads) {
    const int tile = i / (unit_tile * rows), place = i % (unit_tile * rows), from = place / 4, e = place % 4;
    float sum = 0;
#pragma unroll 4
    for (int part = 0; part < 1 << p.shift; ++part)
      sum += shared[sums + ((tile << p.shift) + part) * unit_tile * rows + place];
    finish(tile * unit_tile + from / 4 + 8 * (e / 2), 2 * (from % 4) + e % 2, sum);
  }
}

// A block's share.
struct Part {
  const Space& space;
  const EncoderSpec& encoder;
  int net, index, row0, run, count;  // its number among those of the network; count: rows that there are

  __device__ Part(const Space& s, const EncoderSpec& e)
      : space(s),
        encoder(e),
        net(static_cast<int>(blockIdx.x) / parts),
        index(static_cast<int>(blockIdx.x) % parts),
        row0(static_cast<int>(blockIdx.y) * rows),
        run(static_cast<int>(blockIdx.z)),
        count(min(rows, s.batch - row0)) {}

  __device__ const float* parameters(int of_net) const {
    return space.parameters + run * space.stride + of_net * encoder.net_parameters;
  }
  // The tape's values or deltas of layer l, from the block's first row on.
  __device__ float* of(float* const (&arrays)[max_layers], int l, int of_net) const {
    return arrays[l] + run * space.stride +
           (static_cast<std::size_t>(of_net) * space.batch + row0) * encoder.net.layer[l].ld;
  }
};

template <Math math>
__global__ void __launch_bounds__(threads)
    first_layer(const __grid_constant__ Space space, const __grid_constant__ EncoderSpec encoder,
                const __grid_constant__ FirstShape at) {
  static_assert(threads == first_rows * first_units);
  const Layer& layer = encoder.net.layer[0];
  const int net = static_cast<int>(blockIdx.x) % nets, unit0 = static_cast<int>(blockIdx.x) / nets * first_units;
  const int row0 = static_cast<int>(blockIdx.y) * first_rows, count = min(first_rows, space.batch - row0);
  const std::size_t floats = blockIdx.z * space.stride;
  const float* parameters = space.parameters + floats + net * encoder.net_parameters;
  constexpr int across = stride_across(first_units);
  const int k = layer.inputs, along = at.x.stride;
  copy_block(at.weight, parameters + layer.weight + unit0, layer.ld, min(first_units, layer.ld - unit0), k);
  copy_rows(at.x, encoder.tape.input + floats + static_cast<std::size_t>(row0) * encoder.tape.ld_input,
            encoder.tape.ld_input, encoder.tape.ld_input, count, first_rows);
  commit_copies();
  clear(at.weight.at + k * across, (round_up(k, 8) - k) * across);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const bool there = warp < count && unit0 + lane < layer.outputs;  // a thread finishes one number
  float sum = there && layer.has_bias ? parameters[layer.bias + unit0 + lane] : 0.0f;
  wait_copies<0>();
  __syncthreads();
  constexpr int tiles = first_units / 8;
  const int g = lane / 4, t = lane % 4;
  float c[tiles][4] = {};
  const float *x = shared + at.x.at + g * along + t, *w = shared + at.weight.at + t * across + g;
#pragma unroll 2
  for (int at_k = 8 * warp; at_k < k; at_k += 8 * warps) {
    Operand<math, 4> left;
    left.set(0, rounded<math>(x[at_k]));
    left.set(1, rounded<math>(x[at_k + 8 * along]));
    left.set(2, rounded<math>(x[at_k + 4]));
    left.set(3, rounded<math>(x[at_k + 8 * along + 4]));
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      Operand<math, 2> right;
      right.set(0, rounded<math>(w[at_k * across + 8 * j]));
      right.set(1, rounded<math>(w[(at_k + 4) * across + 8 * j]));
      multiply_add<math>(c[j], left, right);
    }
  }
  float* sums = shared + at.sums + warp * first_rows * across;
#pragma unroll
  for (int j = 0; j < tiles; ++j) {
    *reinterpret_cast<float2*>(sums + g * across + 8 * j + 2 * t) = make_float2(c[j][0], c[j][1]);
    *reinterpret_cast<float2*>(sums + (g + 8) * across + 8 * j + 2 * t) = make_float2(c[j][2], c[j][3]);
  }
  __syncthreads();
#pragma unroll
  for (int part = 0; part < warps; ++part) sum += shared[at.sums + (part * first_rows + warp) * across + lane];
  const std::size_t row = static_cast<std::size_t>(net) * space.batch + row0 + warp;
  if (there) encoder.tape.value[0][floats + row * layer.ld + unit0 + lane] = activate<math>(encoder.net.activation, sum);
}

// Values of the layers above the first, then draws. A block adds up its own units' part of the last layer; the first
// block of the cluster adds up the blocks' and draws.
template <Math math>
__global__ void __launch_bounds__(threads)
    encode(const __grid_constant__ Space space, const __grid_constant__ EncoderSpec encoder,
           const __grid_constant__ EncodeShape at) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  cluster.barrier_arrive();
  const Part part(space, encoder);
  const Net& net = encoder.net;
  const int last = net.depth - 1, latent = space.latent, warp = static_cast<int>(threadIdx.x) / 32,
            lane = static_cast<int>(threadIdx.x) % 32;
  const Layer &top = net.layer[last], &first = net.layer[0], &inner = net.layer[1];
  const int stride = at.h.stride, begin = part.index * at.most, own = min(at.most, top.inputs - begin);  // may be < 0
  const float *parameters = part.parameters(part.net), *values = part.of(encoder.tape.value, 0, part.net);
  if (net.depth == 3) {
    copy_block(at.weight, parameters + inner.weight + begin, inner.ld, min(at.most, inner.ld - begin), inner.inputs);
    copy_rows(at.x, values, first.ld, first.ld, part.count, rows);
  } else {
    copy_rows(at.h, values + begin, first.ld, min(at.most, first.ld - begin), part.count, rows);
  }
  copy_block(at.top_weight, parameters + top.weight + static_cast<std::size_t>(begin) * top.ld, top.ld, top.ld, own);
  commit_copies();
  if (net.depth == 3) {
    clear(at.weight.at + inner.inputs * at.weight.stride, (round_up(inner.inputs, 8) - inner.inputs) * at.weight.stride);
    for (int i = threadIdx.x; i < own; i += threads)
      shared[at.bias + i] = inner.has_bias ? parameters[inner.bias + begin + i] : 0.0f;
  }
  const int units = max(own, 0);
  clear(at.top_weight.at + units * at.top_weight.stride, (round_up(at.most, 8) - units) * at.top_weight.stride);
  wait_copies<0>();
  __syncthreads();
  if (net.depth == 3) {
    float* value = part.of(encoder.tape.value, 1, part.net) + begin;
    multiply_rows<math>(at.inner, at.x.at, at.x.stride, at.weight.at, 1, at.weight.stride, at.sums,
                        [&](int unit, int row, float sum) {
                          const bool there = unit < own && row < part.count;
                          const float y = there ? activate<math>(net.activation, sum + shared[at.bias + unit]) : 0.0f;
                          if (unit < stride) shared[at.h.at + row * stride + unit] = y;
                          if (there) value[row * inner.ld + unit] = y;
                        });
    __syncthreads();
  }
  cluster.barrier_wait();  // the first block is there
  float* received = cluster.map_shared_rank(shared + at.received, 0) + blockIdx.x * at.received_size;
  multiply_rows<math>(at.top, at.h.at, stride, at.top_weight.at, 1, at.top_weight.stride, at.sums,
                      [&](int d, int row, float sum) { received[d * rows + row] = sum; });
  cluster.sync();
  if (blockIdx.x != 0 || warp >= part.count) return;
  for (int of_net = 0; of_net < nets; ++of_net)
    for (int d = lane; d < latent; d += 32) {
      float sum = top.has_bias ? part.parameters(of_net)[top.bias + d] : 0.0f;
#pragma unroll
      for (int p = 0; p < parts; ++p)
        sum += shared[at.received + (of_net * parts + p) * at.received_size + d * rows + warp];
      part.of(encoder.tape.value, last, of_net)[warp * top.ld + d] = sum;
    }
  place_draw(space, part.run, part.row0 + warp, lane);
#endif
}

// The objective's gradient and, from it, the deltas of the hidden layers. What is little is made by every block.
template <Math math>
__global__ void __launch_bounds__(threads)
    ascend_back(const __grid_constant__ Space space, const __grid_constant__ ObjectiveSpec objective,
                const __grid_constant__ EncoderSpec encoder, const __grid_constant__ AscendShape at) {
  const Part part(space, encoder);
  const Net& net = encoder.net;
  const int last = net.depth - 1, latent = space.latent, stride = at.deltas_stride;
  const Layer &top = net.layer[last], &below = net.layer[last - 1], &first = net.layer[0], &inner = net.layer[1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int units = top.inputs, wide = at.value.stride;
  const int begin = part.index * at.most, own = min(at.most, first.outputs - begin);  // may be < 0
  const float* parameters = part.parameters(part.net);
  copy_block(at.top_weight, parameters + top.weight, top.ld, top.ld, units);
  copy_rows(at.value, part.of(encoder.tape.value, last - 1, part.net), below.ld, below.ld, part.count, rows);
  if (net.depth == 3) {
    copy_block(at.weight, parameters + inner.weight + static_cast<std::size_t>(begin) * inner.ld, inner.ld, inner.ld,
               own);
    copy_rows(at.first_value, part.of(encoder.tape.value, 0, part.net) + begin, first.ld, min(at.most, first.ld - begin),
              part.count, rows);
    clear_columns(at.weight, inner.ld, own);
  }
  commit_copies();
  clear_columns(at.top_weight, top.ld, units);
  if (warp < rows) {
    const int mean = at.deltas + warp * stride, sd = mean + rows * stride;
    for (int d = lane; d < stride; d += 32) shared[mean + d] = shared[sd + d] = 0;
    __syncwarp();
    if (warp < part.count)
      ascend_datum(space, objective, part.run, part.row0 + warp, lane, {shared + mean, shared + sd}, blockIdx.x == 0);
  }
  wait_copies<0>();
  __syncthreads();
  const int mine = at.deltas + part.net * rows * stride;
  if (part.index == 0 && warp < part.count) {
    float* to = part.of(encoder.tape.delta, last, part.net) + warp * top.ld;
    for (int d = lane; d < latent; d += 32) to[d] = shared[mine + warp * stride + d];
  }
  float* deltas = part.of(encoder.tape.delta, last - 1, part.net);
  multiply_rows<math>(at.top, mine, stride, at.top_weight.at, at.top_weight.stride, 1, at.sums,
                      [&](int unit, int row, float sum) {
                        if (unit >= wide) return;
                        const bool there = unit < units && row < part.count;
                        const float value = shared[at.value.at + row * wide + unit];
                        const float delta = there ? sum * slope<math>(net.activation, value) : 0.0f;
                        shared[at.delta + row * wide + unit] = delta;
                        if (there && unit / unit_tile % parts == part.index) deltas[row * below.ld + unit] = delta;
                      });
  if (net.depth < 3) return;
  __syncthreads();
  deltas = part.of(encoder.tape.delta, 0, part.net) + begin;
  multiply_rows<math>(at.inner, at.delta, wide, at.weight.at, wide, 1, at.sums, [&](int unit, int row, float sum) {
    if (unit >= own || row >= part.count) return;
    const float value = shared[at.first_value.at + row * at.first_value.stride + unit];
    deltas[row * first.ld + unit] = sum * slope<math>(net.activation, value);
  });
}

dim3 grid_of(const Space& space, int runs) {
  return {blocks, static_cast<unsigned>(ceil_div(space.batch, rows)), static_cast<unsigned>(runs)};
}

template <Math math>
void launch_first_as(const Space& space, const EncoderSpec& encoder, int runs, cudaStream_t stream) {
  const dim3 grid(nets * ceil_div(encoder.net.layer[0].outputs, first_units), ceil_div(space.batch, first_rows), runs);
  const FirstShape shape(encoder.net);
  first_layer<math><<<grid, threads, shape.bytes, stream>>>(space, encoder, shape);
  check(cudaGetLastError(), "starting the encoder");
}

template <Math math>
void launch_encode_as(const Space& space, const EncoderSpec& encoder, int runs, cudaStream_t stream) {
  const EncodeShape shape(encoder.net, space.latent);
  const ClusterLaunch launch(grid_of(space, runs), blocks, threads, static_cast<int>(shape.bytes), stream);
  check(cudaLaunchKernelEx(&launch.config, encode<math>, space, encoder, shape), "starting the encoder");
}

template <Math math>
void launch_ascend_as(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, int runs,
                      cudaStream_t stream) {
  const AscendShape shape(encoder.net, space.latent);
  ascend_back<math><<<grid_of(space, runs), threads, shape.bytes, stream>>>(space, objective, encoder, shape);
  check(cudaGetLastError(), "the objective and the encoder");
}

// Whether a block of the kernel may have so much shared memory. All that there is is asked for: kernels are shared by
// runs of different shapes.
template <class Kernel>
bool allows(Kernel kernel, long long bytes, int most) {
  if (bytes > most) return false;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "asking for shared memory");
  return true;
}

template <Math math>
EncoderPlan plan_as(const Net& net, int latent, int most) {
  EncoderPlan plan;
  for (int l = 1; l < net.depth; ++l)
    if (net.layer[l].inputs > 4 * threads) return plan;  // a thread copies 16 bytes of a row
  plan.above = net.depth >= 2 && net.depth <= 3 && allows(encode<math>, EncodeShape(net, latent).bytes, most) &&
               allows(ascend_back<math>, AscendShape(net, latent).bytes, most);
  plan.first = plan.above && allows(first_layer<math>, FirstShape(net).bytes, most);
  return plan;
}

template <class Call>
auto by_math(Math math, Call call) {
  return math == Math::tf32 ? call.template operator()<Math::tf32>() : call.template operator()<Math::fp32>();
}

}  // namespace

EncoderPlan plan_encoder(const Net& net, int latent, Math math) {
  const int most = cluster_shared_memory();
  return by_math(math, [&]<Math m>() { return plan_as<m>(net, latent, most); });
}

void launch_first_layer(const Space& space, const EncoderSpec& encoder, Math math, int runs, cudaStream_t stream) {
  by_math(math, [&]<Math m>() { launch_first_as<m>(space, encoder, runs, stream); });
}

void launch_encode(const Space& space, const EncoderSpec& encoder, Math math, int runs, cudaStream_t stream) {
  by_math(math, [&]<Math m>() { launch_encode_as<m>(space, encoder, runs, stream); });
}

void launch_ascend_back(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, Math math,
                        int runs, cudaStream_t stream) {
  by_math(math, [&]<Math m>() { launch_ascend_as<m>(space, objective, encoder, runs, stream); });
}

}  // namespace hone::cuda
