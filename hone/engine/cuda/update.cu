#include "hone/engine/cuda/iteration.cuh"

namespace hone::cuda {
namespace {

using WeightTile = Tile<64, 64, 16, 32, 32, 3>;
constexpr int bias_columns = 32, bias_parts = WeightTile::threads / bias_columns;

// θ ← θ + step(gradient), element by element: as hone/optim/optimizer.hpp
struct Step {
  static constexpr bool sums_rows = false;
  float *theta, *first, *second;
  int ld;
  float rate;
  OptimizerKind optimizer;
  RunState* state;

  __device__ void operator()(int row, int col, float gradient) const {
    const std::size_t i = static_cast<std::size_t>(row) * ld + col;
    float step;
    if (optimizer == OptimizerKind::rmsprop) {
      step = rmsprop_step(rate, gradient, state->iteration == 1, second[i]);
    } else {
      const AdamCorrection correction(state->adam[0], state->adam[1]);
      step = adam_step(rate, gradient, correction, first[i], second[i]);
    }
    theta[i] += step;
    if (!isfinite(theta[i])) atomicCAS(&state->bad, 0u, state->iteration);
  }
};

// Sums of deltas over the batch, in an order of their own that is always the same.
__device__ void update_biases(const UpdateTask& task, const float* dy, int batch, float* shared, const Step& step) {
  const int column = static_cast<int>(threadIdx.x) % bias_columns, part = static_cast<int>(threadIdx.x) / bias_columns;
  const int n = task.col0 + column;
  float sum = 0;
  if (n < task.cols)
    for (int row = part; row < batch; row += bias_parts) sum += dy[static_cast<std::size_t>(row) * task.lddy + n];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (part != 0 || n >= task.cols) return;
  sum = 0;
  for (int p = 0; p < bias_parts; ++p) sum += shared[p * bias_columns + column];
  step(0, n, sum);
}

template <Math math>
__global__ void __launch_bounds__(WeightTile::threads) update(Space space, UpdateSpec spec) {
  extern __shared__ __align__(16) float shared[];
  const int run = static_cast<int>(blockIdx.y);
  const UpdateTask task = spec.tasks[blockIdx.x];
  const std::size_t floats = run * space.stride;
  RunState* state = space.of(space.state, run);
  const std::size_t at = floats + task.parameter;
  const Step step = {space.parameters + at, space.first ? space.first + at : nullptr, space.second + at, task.ld,
                     static_cast<float>(state->rate_factor * task.rate), spec.optimizer, state};
  if (task.rows == 0) {
    update_biases(task, task.dy + floats, space.batch, shared, step);
    return;
  }
  const Product product = {task.x + floats, task.dy + floats, task.ldx, task.lddy, task.rows, task.cols, space.batch};
  multiply_tile<WeightTile, Along::m, Along::n, math>(product, task.row0, task.col0, shared, step);
}

}  // namespace

std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, double rate) {
  std::vector<UpdateTask> tasks;
  for (int l = 0; l < net.depth; ++l) {
    const Layer& layer = net.layer[l];
    UpdateTask task = {l == 0 ? tape.input : tape.value[l - 1], tape.delta[l], layer.weight,
                       l == 0 ? tape.ld_input : net.layer[l - 1].ld, layer.ld, layer.ld, layer.inputs, layer.outputs, 0, 0, rate};
    for (task.row0 = 0; task.row0 < layer.inputs; task.row0 += WeightTile::m)
      for (task.col0 = 0; task.col0 < layer.outputs; task.col0 += WeightTile::n) tasks.push_back(task);
    if (!layer.has_bias) continue;
    task.rows = task.row0 = 0;
    task.parameter = layer.bias;
    for (task.col0 = 0; task.col0 < layer.outputs; task.col0 += bias_columns) tasks.push_back(task);
  }
  return tasks;
}

void launch_update(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  constexpr int bytes = Shares<WeightTile, Along::m, Along::n>::bytes;
  static_assert(bytes <= 48 * 1024);
  const dim3 grid(spec.count, runs);
  if (spec.math == Math::tf32)
    update<Math::tf32><<<grid, WeightTile::threads, bytes, stream>>>(space, spec);
  else
    update<Math::fp32><<<grid, WeightTile::threads, bytes, stream>>>(space, spec);
  check(cudaGetLastError(), "updating the parameters");
}

}  // namespace hone::cuda
