#include "hone/engine/cuda/product/network_products.cuh"

#include "hone/engine/cuda/product/product_choice.cuh"

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
  if (along) along = at(along, distances.c);
  const int column = static_cast<int>(blockIdx.x) * side, row = static_cast<int>(blockIdx.y) * side;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
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
  const int column = 2 * (static_cast<int>(blockIdx.x) * side + static_cast<int>(threadIdx.x));
  if (row >= record.rows || column >= record.columns) return;
  const float2 two = pair_at(from + static_cast<std::size_t>(row) * record.ld_from, column);
  put_pair(to + static_cast<std::size_t>(row) * record.ld, column, two.x, two.y);
}

}  // namespace

template <Math math, class E>
void Networks<math, E>::prepare() const {
  const Beside beside{sides_.nets, sides_.runs, {sides_.net_parameters, 0, room_.net_weights}, sides_.of_run()};
  for (int l = 0; l < net_.depth; ++l) {
    const Layer& layer = net_.layer[l];
    const WeightCopy copy{.weights = parameters_ + layer.weight,
                          .inputs = layer.inputs,
                          .outputs = layer.outputs,
                          .ld = layer.ld,
                          .ld_across = l == 0 ? NetworkRoom<float>::ld(layer.inputs) : room_.ld(layer.inputs),
                          .ld_along = ld(l)};
    const Grid grid{dim3(ceil_div(layer.outputs, side), ceil_div(layer.inputs, side), beside.count()),
                    dim3(side, copy_rows)};
    const auto start = [&]<class A>(A* across) {
      launch(copy_weights<A, E>, grid, stream_, "copying weights", copy, across, room_.along[l], beside);
    };
    l == 0 ? start(room_.first_across) : start(room_.across[l]);
  }
}

template <Math math, class E>
template <class Epilogue>
void Networks<math, E>::launch_forward(int rows, int l, const Epilogue& epilogue, std::size_t net_outputs) const {
  const Layer& layer = net_.layer[l];
  const Distances net{l == 0 ? sides_.net_input : net_values(l - 1), room_.net_weights, net_outputs,
                      sides_.net_parameters};
  const Beside beside{sides_.nets, sides_.runs, net, sides_.of_run()};
  if (l == 0)
    launch_product<float, math>({tape_.input, room_.first_across, tape_.ld_input, NetworkRoom<float>::ld(layer.inputs),
                                 rows, layer.outputs, layer.inputs},
                                beside, epilogue, stream_);
  else
    launch_product<E, math>(
        {room_.value[l - 1], room_.across[l], ld(l - 1), ld(l - 1), rows, layer.outputs, layer.inputs}, beside,
        epilogue, stream_);
}

template <Math math, class E>
template <class Epilogue>
void Networks<math, E>::launch_backward(int rows, int l, const Epilogue& epilogue) const {
  const Layer& layer = net_.layer[l];
  Beside beside{
      sides_.nets, sides_.runs, {net_values(l), room_.net_weights, l > 0 ? net_values(l - 1) : 0}, sides_.of_run()};
  if (room_.delta[l])
    return launch_product<E, math>({room_.delta[l], room_.along[l], ld(l), ld(l), rows, layer.inputs, layer.outputs},
                                   beside, epilogue, stream_);
  if constexpr (sizeof(E) == sizeof(float)) {  // of halves the last delta is always ours
    beside.net.a = sides_.net_rows * layer.ld;
    launch_product<float, math>({tape_.delta[l], reinterpret_cast<const float*>(room_.along[l]), layer.ld, ld(l), rows,
                                 layer.inputs, layer.outputs},
                                beside, epilogue, stream_);
  }
}

template <Math math, class E>
void Networks<math, E>::forward_hidden(int rows) const {
  for (int l = 0; l + 1 < net_.depth; ++l)
    launch_forward(rows, l, Activated<math, E>{room_.value[l], bias(l), ld(l), net_.activation}, net_values(l));
}

template <Math math, class E>
void Networks<math, E>::forward(int rows) const {
  forward_hidden(rows);
  const int last = net_.depth - 1, ld = net_.layer[last].ld;
  launch_forward(rows, last, Activated<math, float>{tape_.value[last], bias(last), ld, Activation::linear},
                 sides_.net_rows * ld);
}

template <Math math, class E>
void Networks<math, E>::compare(int rows, const Comparison& data) const {
  const int last = net_.depth - 1;
  forward_hidden(rows);
  launch_forward(rows, last, Compared<math, E>{data, room_.delta[last], bias(last), ld(last), rows}, 0);
}

template <Math math, class E>
void Networks<math, E>::backward(int rows) const {
  for (int l = net_.depth - 1; l > 0; --l)
    launch_backward(rows, l, Sloped<math, E>{room_.delta[l - 1], room_.value[l - 1], ld(l - 1), net_.activation});
}

template <Math math, class E>
void Networks<math, E>::compute_gradient(int rows, const Comparison& data, float* gradient, int ld) const {
  compare(rows, data);
  backward(rows);
  launch_backward(rows, 0, Sloped<math, float>{gradient, nullptr, ld, Activation::linear});
}

template <Math math, class E>
void Networks<math, E>::record(int rows) const {
  const auto copy = [&](const E* from, float* to, int l) {
    const Layer& layer = net_.layer[l];
    const Beside beside{sides_.nets, sides_.runs, {net_values(l), 0, sides_.net_rows * layer.ld}, sides_.of_run()};
    const Grid grid{dim3(ceil_div(layer.outputs, 2 * side), ceil_div(rows, copy_rows), beside.count()),
                    dim3(side, copy_rows)};
    launch(record_rows<E>, grid, stream_, "recording layers", RowRecord{rows, layer.outputs, ld(l), layer.ld}, from, to,
           beside);
  };
  for (int l = 0; l < net_.depth; ++l) {
    if (room_.value[l]) copy(room_.value[l], tape_.value[l], l);
    if (room_.delta[l]) copy(room_.delta[l], tape_.delta[l], l);
  }
}

template class Networks<Math::tf32, Tf32>;
template class Networks<Math::tf32, __half>;
template class Networks<Math::fp32, float>;

}  // namespace hone::cuda
