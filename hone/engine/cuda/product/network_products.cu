#include "hone/engine/cuda/product/network_products.cuh"

#include "hone/engine/cuda/convolution/passes.cuh"
#include "hone/engine/cuda/product/product_choice.cuh"
#include "hone/latent/likelihoods.hpp"

namespace hone::cuda {
namespace {

constexpr int side = 32, copy_rows = 8;

// W (inputs, ld) → Wᵀ (outputs, ld_across) and, where it is wanted, W (inputs, ld_along), as other numbers. What pads
// rows stays 0.
struct WeightCopy {
  const float* weights;
  int inputs, outputs, ld;
  int ld_across, ld_along;
};
__device__ __forceinline__ void put(float* to, float x) { *to = x; }
__device__ __forceinline__ void put(Tf32* to, float x) { to->value = to_tf32(x); }
__device__ __forceinline__ void put(__half* to, float x) {
  *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(packed(x, 0));
}

template <class A, class E>
__global__ void copy_weights(WeightCopy copy, A* across, E* along, Beside beside) {
  __shared__ float tile[side][side + 1];
  const Distances distances = beside.of(static_cast<int>(blockIdx.z));
  const float* weights = copy.weights + distances.a;
  across = at(across, distances.c);
  if (along) along = at(along, distances.b);
  const int column = static_cast<int>(blockIdx.x) * side, row = static_cast<int>(blockIdx.y) * side;
  const int x = this_thread(), y = static_cast<int>(threadIdx.y);
  constexpr int turns = side / copy_rows;
  float w[turns];
#pragma unroll
  for (int i = 0; i < turns; ++i) {  // first all loads
    const int input = row + y + i * copy_rows;
    const bool inside = input < copy.inputs && column + x < copy.outputs;
    w[i] = inside ? weights[static_cast<std::size_t>(input) * copy.ld + column + x] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < turns; ++i) {
    const int input = row + y + i * copy_rows;
    tile[y + i * copy_rows][x] = w[i];
    if (along && input < copy.inputs && column + x < copy.outputs)
      put(along + static_cast<std::size_t>(input) * copy.ld_along + column + x, w[i]);
  }
  __syncthreads();
  for (int i = y; i < side && column + i < copy.outputs; i += copy_rows)
    if (row + x < copy.inputs)
      put(across + static_cast<std::size_t>(column + i) * copy.ld_across + row + x, tile[x][i]);
}

// (rows, ld_from) → (rows, ld)
struct RowRecord {
  int rows, columns, ld_from, ld;
};
template <class E>
__global__ void record_rows(RowRecord record, const E* from, float* to, Beside beside) {
  const Distances distances = beside.of(static_cast<int>(blockIdx.z));
  from = at(from, distances.a);
  to = at(to, distances.c);
  const int row = static_cast<int>(blockIdx.y) * copy_rows + static_cast<int>(threadIdx.y);
  const int column = 2 * (static_cast<int>(blockIdx.x) * side + this_thread());
  if (row >= record.rows || column >= record.columns) return;
  const float2 two = pair_at(from + static_cast<std::size_t>(row) * record.ld_from, column);
  put_pair(to + static_cast<std::size_t>(row) * record.ld, column, two.x, two.y);
}

// The outputs of a batch, (rows, ld) floats, which become residuals in place; those of runs are `run` floats apart.
template <class E>
struct OutputRows {
  E* y;
  int rows, outputs, ld, runs;
  std::size_t run;
};

constexpr int likelihood_rows = 8;  // of a block: one warp each

// What `data` wants where no product computes the likelihood, or none makes the outputs. A warp takes 32 items of a
// row. The formulas are those of the cpu engine, in double.
template <class E, class Likelihood>
__global__ void compare_outputs(OutputRows<E> all, Comparison data, LikelihoodShape shape, int items) {
  const int row = static_cast<int>(blockIdx.x) * likelihood_rows + static_cast<int>(threadIdx.y);
  const int part = static_cast<int>(blockIdx.y), item = part * row_sum_columns + this_thread();
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
  Likelihood::residual(shape, item, a, x, [&](int i, double r) { put(y + i, alive ? static_cast<float>(r) : 0.0f); });
}

template <class E>
void launch_likelihood(const OutputRows<E>& all, const Comparison& data, cudaStream_t stream) {
  const LikelihoodShape shape{all.outputs / facts_of(data.density).outputs, data.categories};
  const Grid grid{dim3(ceil_div(all.rows, likelihood_rows), Comparison::parts(all.outputs), all.runs),
                  dim3(row_sum_columns, likelihood_rows)};
  with_likelihood(data.density, [&](auto likelihood) {
    launch(compare_outputs<E, decltype(likelihood)>, grid, stream, "computing a likelihood", all, data, shape,
           items_of(data.density, shape));
  });
}

}  // namespace

template <class E>
void Networks<E>::prepare() const {
  for (int l = 0; l < net_.depth; ++l) {
    const Layer& layer = net_.layer[l];
    const auto start = [&]<class A>(A* across) {
      const WeightCopy copy{.weights = parameters_ + layer.weight,
                            .inputs = layer.weight_rows(),
                            .outputs = layer.weight_columns(),
                            .ld = layer.weight_ld(),
                            .ld_across = NetworkScratch<A>::ld(layer.weight_rows()),
                            .ld_along = scratch_.ld(layer.weight_columns())};
      const Beside all = beside({sides_.net_parameters, net_along(l), net_across<A>(l)});
      const Grid grid{dim3(ceil_div(copy.outputs, side), ceil_div(copy.inputs, side), all.count()),
                      dim3(side, copy_rows)};
      launch(copy_weights<A, E>, grid, stream_, "copying weights", copy, across, scratch_.along[l], all);
    };
    l == 0 && !layer.convolves() ? start(scratch_.first_across) : start(scratch_.across[l]);
  }
}

// Forward with Wᵀ, back with W: from large images to small ones, or the other way.
template <class E>
template <class From, class To, bool back>
void Networks<E>::convolve(int rows, int l, const Images<const From>& from, const Layered<math, To, back>& finish,
                           std::size_t net_to) const {
  const Layer& layer = net_.layer[l];
  const ImagePass<E, math> pass(layer.windows, scratch_.windows, rows, beside({}), stream_);
  const PassWeights<E> weights =
      back ? PassWeights<E>{scratch_.along[l], scratch_.ld(layer.weight_columns()), net_along(l)}
           : PassWeights<E>{scratch_.across[l], scratch_.ld(layer.weight_rows()), net_across<E>(l)};
  const Distances to{.c = net_to, .bias = sides_.net_parameters};
  if ((layer.kind == LayerKind::down) != back) return pass.shrink(from, weights, finish, to);
  if constexpr (std::is_same_v<From, E>) pass.grow(from, weights, finish, to);  // images of data only shrink
}

template <class E>
template <class Epilogue>
void Networks<E>::launch_forward(int rows, int l, const Epilogue& epilogue, std::size_t net_outputs) const {
  const Layer& layer = net_.layer[l];
  if constexpr (!are_halves<E> && requires { epilogue.activation; })
    if (layer.convolves())
      return l == 0 ? convolve(rows, l, Images<const float>{tape_.input, tape_.ld_input, 0}, epilogue, net_outputs)
                    : convolve(rows, l, Images<const E>{scratch_.value[l - 1], ld(l - 1), net_values(l - 1)}, epilogue,
                               net_outputs);
  const auto start = [&]<class A>(const A* input, int ld_input, std::size_t net_input, const A* weights) {
    const Product<A> product{.a = input,
                             .b = weights,
                             .lda = ld_input,
                             .ldb = NetworkScratch<A>::ld(layer.inputs),
                             .m = rows,
                             .n = layer.outputs,
                             .k = layer.inputs};
    const Distances net{.a = net_input, .b = net_across<A>(l), .c = net_outputs, .bias = sides_.net_parameters};
    launch_product<A, math>(product, beside(net), epilogue, stream_);
  };
  if (l == 0)
    start(tape_.input, tape_.ld_input, 0, scratch_.first_across);
  else
    start(scratch_.value[l - 1], ld(l - 1), net_values(l - 1), scratch_.across[l]);
}

template <class E>
template <class Epilogue>
void Networks<E>::launch_backward(int rows, int l, const Epilogue& epilogue) const {
  const Layer& layer = net_.layer[l];
  const std::size_t net_to = l > 0 ? net_values(l - 1) : 0;
  if constexpr (!are_halves<E>)
    if (layer.convolves())
      return convolve(rows, l, Images<const E>{scratch_.delta[l], ld(l), net_values(l)}, epilogue, net_to);
  const auto start = [&]<class A>(const A* delta, int ld_delta, std::size_t net_delta, const A* weights) {
    const Product<A> product{
        .a = delta, .b = weights, .lda = ld_delta, .ldb = ld(l), .m = rows, .n = layer.inputs, .k = layer.outputs};
    const Distances net{net_delta, net_along(l), net_to};
    launch_product<A, math>(product, beside(net), epilogue, stream_);
  };
  if (scratch_.delta[l]) return start(scratch_.delta[l], ld(l), net_values(l), scratch_.along[l]);
  if constexpr (sizeof(E) == sizeof(float))  // of halves the last delta is always ours
    start(tape_.delta[l], layer.ld, sides_.net_rows * layer.ld, reinterpret_cast<const float*>(scratch_.along[l]));
}

template <class E>
void Networks<E>::forward_hidden(int rows) const {
  for (int l = 0; l + 1 < net_.depth; ++l)
    launch_forward(rows, l, Activated<math, E>{scratch_.value[l], bias(l), ld(l), net_.activation}, net_values(l));
}

template <class E>
void Networks<E>::forward(int rows) const {
  forward_hidden(rows);
  const int last = net_.depth - 1, ld = net_.layer[last].ld;
  launch_forward(rows, last, Activated<math, float>{tape_.value[last], bias(last), ld, Activation::linear},
                 sides_.net_rows * ld);
}

template <class E>
void Networks<E>::compare(int rows, const Comparison& data) const {
  const int last = net_.depth - 1;
  forward_hidden(rows);
  if constexpr (sizeof(E) == sizeof(float)) {  // halves suit Bernoullis alone
    if (!facts_of(data.density).fused || net_.layer[last].convolves()) {
      auto* const outputs = reinterpret_cast<float*>(scratch_.delta[last]);
      launch_forward(rows, last, Activated<math, float>{outputs, bias(last), ld(last), Activation::linear}, 0);
      const OutputRows<E> at{scratch_.delta[last], rows, net_.layer[last].outputs, ld(last), sides_.runs, sides_.run};
      return launch_likelihood(at, data, stream_);
    }
  }
  launch_forward(rows, last, Compared<math, E>{data, scratch_.delta[last], bias(last), ld(last), rows}, 0);
}

template <class E>
void Networks<E>::backward(int rows) const {
  for (int l = net_.depth - 1; l > 0; --l)
    launch_backward(rows, l,
                    LayeredBack<math, E>{scratch_.delta[l - 1], scratch_.value[l - 1], ld(l - 1), net_.activation});
}

template <class E>
void Networks<E>::compute_gradient(int rows, const Comparison& data, float* gradient, int ld) const {
  compare(rows, data);
  backward(rows);
  launch_backward(rows, 0, LayeredBack<math, float>{gradient, nullptr, ld, Activation::linear});
}

template <class E>
void Networks<E>::record(int rows) const {
  const auto copy = [&](const E* from, float* to, int l) {
    const Layer& layer = net_.layer[l];
    const Beside all = beside({net_values(l), 0, sides_.net_rows * layer.ld});
    const Grid grid{dim3(ceil_div(layer.outputs, 2 * side), ceil_div(rows, copy_rows), all.count()),
                    dim3(side, copy_rows)};
    launch(record_rows<E>, grid, stream_, "recording layers",
           RowRecord{.rows = rows, .columns = layer.outputs, .ld_from = ld(l), .ld = layer.ld}, from, to, all);
  };
  for (int l = 0; l < net_.depth; ++l) {
    if (scratch_.value[l]) copy(scratch_.value[l], tape_.value[l], l);
    if (scratch_.delta[l]) copy(scratch_.delta[l], tape_.delta[l], l);
  }
}

template class Networks<Tf32>;
template class Networks<__half>;
template class Networks<float>;

}  // namespace hone::cuda
