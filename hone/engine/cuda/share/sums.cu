#include "hone/engine/cuda/share/sums.cuh"

#include <algorithm>

#include "hone/engine/cuda/update/gradient.cuh"
#include "hone/engine/cuda/update/learn.cuh"

namespace hone::cuda {
namespace {

constexpr int tile_floats = 2 * rows_at_once * stride;  // of shared memory, for operands

__host__ __device__ int rows_of_sums(const UpdateTask& task) {
  const int left = task.rows - task.row0;
  return task.rows == 0 ? bias_parts : left < side ? left : side;
}

// The sums that a tile begins with: what other ranks have added up.
struct FromBefore {
  const float* sums;
  int rows;

  __device__ void operator()(Sums& c, int row, int column) const {
    const auto two = [&](int r) {
      return r < rows ? *reinterpret_cast<const float2*>(sums + r * side + column) : float2{0, 0};
    };
    const float2 near = two(row), far = two(row + 8);
    c = {near.x, near.y, far.x, far.y};
  }
};

// A block per task. `go_on`: from the sums that are there.
template <Math math>
__global__ void __launch_bounds__(update_threads, 2)
    add_rows(const __grid_constant__ Space own, const UpdateTask* tasks, bool go_on) {
  extern __shared__ __align__(16) float shared[];
  const UpdateTask task = tasks[blockIdx.x];
  if (task.rows == 0) {
    static_assert(bias_columns == side);
    const int column = this_thread() % bias_columns, part = this_thread() / bias_columns;
    float& sum = task.sums[this_thread()];
    sum = sum_deltas(task, own, 0, task.col0 + column, part, go_on ? sum : 0.0f);
    return;
  }
  const int rows = rows_of_sums(task);
  if (go_on)
    sum_gradient<math>(task, own, 0, shared, FromBefore{task.sums, rows});
  else
    sum_gradient<math>(task, own, 0, shared);
  for (int i = this_thread(); i < rows * side; i += update_threads) task.sums[i] = shared[i / side * stride + i % side];
}

__global__ void __launch_bounds__(update_threads)
    learn_alone(const __grid_constant__ Space space, const __grid_constant__ ObjectiveSpec objective, int scratch) {
  extern __shared__ __align__(16) float shared[];
  learn(space, objective, 0, reinterpret_cast<int*>(shared), scratch);
}

template <OptimizerKind optimizer>
__device__ void move_biases(const UpdateTask& task, const Step& step) {
  const int column = this_thread(), n = task.col0 + column;
  if (column >= bias_columns || n >= task.cols) return;
  float sum = 0;
  for (int p = 0; p < bias_parts; ++p) sum += task.sums[p * bias_columns + column];
  float none = 0;
  step.move<optimizer>(step.theta[n], sum, step.first ? step.first[n] : none, step.second[n]);
  step.check(isfinite(step.theta[n]));
}

// A block per task.
template <OptimizerKind optimizer>
__global__ void __launch_bounds__(update_threads)
    move_by_sums(const __grid_constant__ Space space, const UpdateTask* tasks) {
  const UpdateTask task = tasks[blockIdx.x];
  const Step step(space, task, 0);
  if (task.rows == 0) return move_biases<optimizer>(task, step);
  const std::size_t at = task.parameter + static_cast<std::size_t>(task.row0) * task.ld + task.col0;
  const WeightTile tile = {.rows = side,
                           .log_quads = log_side_quads,
                           .stride = task.ld,
                           .theta = space.parameters + at,
                           .second = space.second + at,
                           .gradient = task.sums,
                           .gradient_stride = side};
  update_tile<optimizer>(task, tile, step, [](int, int, const float4&) {});
}

}  // namespace

std::size_t floats_of_sums(const UpdateTask& task) { return static_cast<std::size_t>(rows_of_sums(task)) * side; }

void launch_add_rows(const Space& own, const UpdateSpec& spec, const TaskBlock& block, AddTo to, cudaStream_t stream) {
  with_math(spec.math, [&]<Math math>() {
    constexpr auto kernel = add_rows<math>;
    constexpr int bytes = tile_floats * static_cast<int>(sizeof(float));
    allow_shared_memory<kernel, bytes>();
    launch(kernel, {dim3(block.count), update_threads, bytes}, stream, "summing gradients", own,
           spec.tasks + block.first, to == AddTo::sums);
  });
}

void launch_learn(const Space& space, const UpdateSpec& spec, cudaStream_t stream) {
  constexpr int most = 96 * 1024;
  allow_shared_memory<learn_alone, most>();
  const int bytes = std::min(most, space.batch * static_cast<int>(sizeof(int)));
  launch(learn_alone, {dim3(1), update_threads, bytes}, stream, "learning of a minibatch", space, spec.objective,
         bytes / static_cast<int>(sizeof(int)));
}

void launch_move(const Space& space, const UpdateSpec& spec, const TaskBlock& block, cudaStream_t stream) {
  const Grid grid{dim3(block.count), update_threads};
  const UpdateTask* tasks = spec.tasks + block.first;
  spec.optimizer == OptimizerKind::adam
      ? launch(move_by_sums<OptimizerKind::adam>, grid, stream, "updating the parameters", space, tasks)
      : launch(move_by_sums<OptimizerKind::rmsprop>, grid, stream, "updating the parameters", space, tasks);
}

}  // namespace hone::cuda
