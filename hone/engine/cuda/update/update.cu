#include "hone/engine/cuda/update/update.cuh"

#include <algorithm>

#include "hone/engine/cuda/refinement/registers/register_weights.cuh"
#include "hone/engine/cuda/update/first_layer.cuh"
#include "hone/engine/cuda/update/gradient.cuh"
#include "hone/engine/cuda/update/learn.cuh"
#include "hone/engine/cuda/update/prepare.cuh"

namespace hone::cuda {
namespace {

constexpr int kept_stride = side + 4;  // of θ and moments: hardly a bank twice where they are packed

constexpr int shared_floats = std::max(2 * rows_at_once * stride + 2 * side * kept_stride, Strip::floats);
static_assert(4 * shared_floats <= 99 * 1024);  // what all devices have

// A gradient that another kernel summed → tile (side, stride)
__device__ __forceinline__ void copy_gradient(const UpdateTask& task, const Space& space, int run, float* shared) {
  copy_tile(shared, stride, task.gradient + run * space.stride, task.ld, task.row0, task.rows, side, task.col0,
            log_side_quads);
  wait_for_copies();
  __syncthreads();
}

// Sums of deltas over the batch, in an order of their own that is always the same.
template <OptimizerKind optimizer>
__device__ void update_biases(const UpdateTask& task, const Space& space, int run, float* shared) {
  const Step step(space, task, run);
  wait_for_previous();
  const int column = this_thread() % bias_columns, part = this_thread() / bias_columns;
  const int n = task.col0 + column;
  float sum = 0;
  if (!task.gradient)
    sum = sum_deltas(task, space, run, n, part, 0);
  else if (n < task.cols && part == 0)
    sum = task.gradient[run * space.stride + n];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (part != 0 || n >= task.cols) return;
  sum = 0;
  for (int p = 0; p < bias_parts; ++p) sum += shared[p * bias_columns + column];
  float none = 0;
  step.move<optimizer>(step.theta[n], sum, step.first ? step.first[n] : none, step.second[n]);
  step.check(isfinite(step.theta[n]));
}

// What blocks know of their iteration; `coming`: the number of the next one.
struct Context {
  const Space& space;
  const UpdateSpec& spec;
  bool prepares;
  int run;
  std::uint32_t coming;
};

template <OptimizerKind optimizer, bool moves>
__device__ __forceinline__ void update_strip(const Context& at, int block, float* shared) {
  const Space& space = at.space;
  const int *minibatch = space.of(space.datum, at.run),
            *next_minibatch = moves ? space.of(space.following, at.run) : minibatch_of(space, at.run, at.coming);
  const Strip::Rows rows(space.batch, moves ? minibatch : nullptr, at.prepares ? next_minibatch : nullptr, 0);
  const UpdateTask task = at.spec.tasks[block];
  const Strip strip(space, task, at.spec.preparation.data, at.run, shared);
  copy_weights(strip.tile(), task, space, at.run, moves);
  strip.begin_bits(rows);
  strip.clear_beyond();
  if constexpr (moves) {
    const Step step(space, task, at.run);
    wait_for_previous();
    strip.sum_gradient(minibatch);
    update_tile<optimizer>(task, strip.tile(), step,
                           [&](int row, int col, const float4& theta) { strip.keep(row, col, theta); });
  } else {
    wait_for_previous();
    wait_for_copies();
    strip.keep_all();
  }
  if (!at.prepares) return;
  __syncthreads();
  strip.multiply_next(next_minibatch);
}

template <Math math, OptimizerKind optimizer, bool moves>
__device__ __forceinline__ void update_weights(const Context& at, const UpdateTask& task, float* shared) {
  const Space& space = at.space;
  float* kept = shared + 2 * rows_at_once * stride;
  const WeightTile tile = {.rows = side,
                           .log_quads = log_side_quads,
                           .stride = kept_stride,
                           .theta = kept,
                           .second = kept + side * kept_stride,
                           .gradient = shared,
                           .gradient_stride = stride};
  copy_weights(tile, task, space, at.run, moves);
  if constexpr (moves) {
    const Step step(space, task, at.run);
    wait_for_previous();
    if (task.gradient)
      copy_gradient(task, space, at.run, shared);
    else
      sum_gradient<math>(task, space, at.run, shared);
    update_tile<optimizer>(task, tile, step, [&](int row, int col, const float4& theta) {
      *reinterpret_cast<float4*>(tile.theta + row * tile.stride + col) = theta;
    });
  } else {
    wait_for_previous();
    wait_for_copies();
  }
  if (!at.prepares || task.packed_layer < 0) return;
  __syncthreads();
  auto* to = reinterpret_cast<Fragment*>(space.of(space.packed, at.run));  // as a refinement's kernel wants them
  at.spec.one_layer ? pack_fragments<NoHiddenLayers>(to, task, tile.theta, kept_stride, side / 16)
                    : pack_fragments<TwoHiddenLayers>(to, task, tile.theta, kept_stride, side / 16);
}

// `moves`: all tensors move, and the next iteration is prepared where the grid has `rows` for it. Else parameters stay,
// and an iteration is prepared as if they had moved. A row of blocks is a run's; but the first `rows` prepare data and
// numbers of all runs: they wait for nothing, and where multiprocessors are free they are made while the kernel before
// still runs.
template <Math math, OptimizerKind optimizer, bool moves>
__global__ void __launch_bounds__(update_threads, 2)
    update(const __grid_constant__ Space space, const __grid_constant__ Space next,
           const __grid_constant__ UpdateSpec spec, int rows) {
  extern __shared__ __align__(16) float shared[];
  int block = static_cast<int>(blockIdx.x), run = static_cast<int>(blockIdx.y);
  const auto coming = [&] {
    return moves ? __ldcg(&space.of(space.now, run)->iteration) + 1 : space.of(space.state, run)->next;
  };
  if (rows > 0) {
    if (run < rows) {
      block += run * static_cast<int>(gridDim.x);
      run = block / space.batch;
      if (run + rows < static_cast<int>(gridDim.y))
        prepare_datum(next, spec.preparation, run, coming(), block % space.batch);
      return;
    }
    run -= rows;
  }
  const Context at = {.space = space, .spec = spec, .prepares = rows > 0, .run = run, .coming = coming()};
  if constexpr (moves) {
    if (block == 0)  // it takes long
      return learn(space, spec.objective, run, reinterpret_cast<int*>(shared), shared_floats);
    block -= 1;
  }
  if constexpr (math == Math::tf32)  // strips are for a kernel in tf32
    if (block < spec.strips) return update_strip<optimizer, moves>(at, block, shared);
  const UpdateTask task = spec.tasks[block];
  if (task.rows > 0 && (moves || task.packed_layer >= 0))
    update_weights<math, optimizer, moves>(at, task, shared);
  else if constexpr (moves)
    update_biases<optimizer>(task, space, run, shared);
  else
    wait_for_previous();
}

template <bool moves>
void launch_as(const Space& space, const Space* next, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  const auto with = [&]<Math math, OptimizerKind optimizer>() {
    constexpr auto kernel = update<math, optimizer, moves>;
    constexpr int bytes = shared_floats * static_cast<int>(sizeof(float));
    allow_shared_memory<kernel, bytes>();
    const int width = spec.count + moves, rows = next ? ceil_div(runs * space.batch, width) : 0;
    const Launch launch(dim3(width, rows + runs), 1, update_threads, bytes, stream);
    check(cudaLaunchKernelEx(&launch.config, kernel, space, next ? *next : space, spec, rows),
          moves ? "updating the parameters" : "preparing an iteration");
  };
  with_math(spec.math, [&]<Math math>() {
    moves&& spec.optimizer == OptimizerKind::adam ? with.template operator()<math, OptimizerKind::adam>()
                                                  : with.template operator()<math, OptimizerKind::rmsprop>();
  });
}

}  // namespace

std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, int l, const LayerRates& rates,
                                     const FirstLayerSums& strips) {
  std::vector<UpdateTask> tasks;
  const Layer& layer = net.layer[l];
  UpdateTask task{.x = l == 0 ? tape.input : tape.value[l - 1],
                  .dy = tape.delta[l],
                  .parameter = layer.weight,
                  .ldx = l == 0 ? tape.ld_input : net.layer[l - 1].ld,
                  .lddy = layer.ld,
                  .ld = layer.weight_ld(),
                  .rows = layer.weight_rows(),
                  .cols = layer.weight_columns(),
                  .rate = rates.weights,
                  .gradient = layer.convolves() ? tape.gradient + layer.weight : nullptr};
  const auto add = [&](int width) {
    for (task.col0 = 0; task.col0 < task.cols; task.col0 += width) tasks.push_back(task);
  };
  const auto begin = [&](int part) { return ceil_div(layer.inputs, 64) * part / strips.parts; };  // in words
  for (int part = 0; part < strips.parts; ++part) {
    task.row0 = 64 * begin(part);
    task.words = begin(part + 1) - begin(part);
    task.sums = strips.sums + part * strips.of_part;
    add(Strip::units);
  }
  for (task.row0 = 0; strips.parts == 0 && task.row0 < task.rows; task.row0 += side) add(side);
  if (!layer.has_bias) return tasks;
  task.rows = task.row0 = task.words = 0;
  task.cols = layer.biases();
  task.rate = rates.biases;
  task.parameter = layer.bias;
  if (task.gradient) task.gradient = tape.gradient + layer.bias;
  add(bias_columns);
  return tasks;
}

void launch_prepare(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  launch_as<false>(space, &space, spec, runs, stream);
}

void launch_update(const Space& space, const Space* next, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  launch_as<true>(space, next, spec, runs, stream);
}

}  // namespace hone::cuda
