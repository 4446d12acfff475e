#pragma once

#include "hone/engine/cuda/device/launch.cuh"
#include "hone/engine/cuda/device/warp.cuh"
#include "hone/engine/cuda/product/product.cuh"
#include "hone/latent/likelihoods.hpp"

namespace hone::cuda {

// The outputs of a batch, (rows, ld) floats, which become residuals in place; those of runs are `run` floats apart.
template <class E>
struct OutputRows {
  E* y;
  int rows, outputs, ld, runs;
  std::size_t run;
};

inline constexpr int likelihood_rows = 8;  // of a block: one warp each

// What `data` wants of a likelihood that no product computes. A warp takes 32 items of a row. The formulas are those of
// the cpu engine, in double.
template <class E, class Likelihood>
__global__ void compare_outputs(OutputRows<E> all, Comparison data, LikelihoodShape shape, int items) {
  const int row = static_cast<int>(blockIdx.x) * likelihood_rows + static_cast<int>(threadIdx.y);
  const int part = static_cast<int>(blockIdx.y), item = part * row_sum_columns + static_cast<int>(threadIdx.x);
  if (row >= all.rows) return;
  const std::size_t shift = blockIdx.z * all.run;
  E* const y = all.y + shift + static_cast<std::size_t>(row) * all.ld;
  const float* const a = reinterpret_cast<const float*>(y);
  const float* const x = data.x + shift + static_cast<std::size_t>(row / data.rows_per_datum) * data.ldx;
  if (data.partial) {
    const double sum = warp_sum(item < items ? Likelihood::log_p(shape, item, a, x) : 0.0);
    if (threadIdx.x == 0)
      data.partial[shift + static_cast<std::size_t>(part) * all.rows + row] = static_cast<float>(sum);
  }
  if (!data.residuals || item >= items) return;
  const bool alive = !data.alive || data.alive[shift + row];
  Likelihood::residual(shape, item, a, x, [&](int i, double r) {
    const float number = alive ? static_cast<float>(r) : 0.0f;
    if constexpr (std::is_same_v<E, Tf32>)
      y[i].value = to_tf32(number);
    else
      y[i] = number;
  });
}

template <class E>
void launch_likelihood(const OutputRows<E>& all, const Comparison& data, cudaStream_t stream) {
  const LikelihoodShape shape{all.outputs / facts_of(data.density).outputs, data.categories};
  const Grid grid{dim3(ceil_div(all.rows, likelihood_rows), Comparison::parts(all.outputs), all.runs),
                  dim3(row_sum_columns, likelihood_rows)};
  with_separate_likelihood(data.density, [&](auto likelihood) {
    launch(compare_outputs<E, decltype(likelihood)>, grid, stream, "computing a likelihood", all, data, shape,
           items_of(data.density, shape));
  });
}

}  // namespace hone::cuda
