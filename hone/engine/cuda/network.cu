#include "hone/engine/cuda/network.cuh"

namespace hone::cuda {

template <Math math>
void Networks<math>::forward(int rows, int from, int to) const {
  for (int l = from; l < to; ++l) {
    const Layer& layer = net_.layer[l];
    const Activation activation = l + 1 < net_.depth ? net_.activation : Activation::linear;
    launch<Along::n>(below(rows, l), net_side(l, l - 1),
                     Activated<math, float>{tape_.value[l], bias(layer), layer.ld, activation});
  }
}

template <Math math>
void Networks<math>::compare(int rows, const Comparison& data) const {
  const int last = net_.depth - 1;
  forward(rows, 0, last);
  const Layer& layer = net_.layer[last];
  launch<Along::n>(below(rows, last), {}, Compared<math, float>{data, tape_.delta[last], bias(layer), layer.ld, rows});
}

template <Math math>
void Networks<math>::backward(int rows) const {
  for (int l = net_.depth - 1; l > 0; --l)
    launch<Along::k>(above(rows, l), net_side(l - 1, l),
                     Sloped<math, float>{tape_.delta[l - 1], tape_.value[l - 1], net_.layer[l - 1].ld,
                                         net_.activation});
}

template <Math math>
void Networks<math>::backward_input(int rows, float* slope, int ld) const {
  launch<Along::k>(above(rows, 0), {}, Sloped<math, float>{slope, nullptr, ld, Activation::linear});
}

template <Math math>
template <Along b, class Epilogue>
void Networks<math>::launch(const Product<float>& p, const Distances& net, const Epilogue& epilogue) const {
  launch_product<SmallTile, b, math>(p, {sides_.nets, sides_.runs, net, sides_.of_run()}, epilogue, stream_);
}

template <Math math>
Product<float> Networks<math>::below(int rows, int l) const {
  const Layer& layer = net_.layer[l];
  return {l == 0 ? tape_.input : tape_.value[l - 1],
          parameters_ + layer.weight,
          l == 0 ? tape_.ld_input : net_.layer[l - 1].ld,
          layer.ld,
          rows,
          layer.outputs,
          layer.inputs};
}
template <Math math>
Product<float> Networks<math>::above(int rows, int l) const {
  const Layer& layer = net_.layer[l];
  return {tape_.delta[l], parameters_ + layer.weight, layer.ld, layer.ld, rows, layer.inputs, layer.outputs};
}

// of a product that makes layer `to`'s numbers of layer `from`'s
template <Math math>
Distances Networks<math>::net_side(int to, int from) const {
  return {from < 0 ? sides_.net_input : sides_.net_rows * net_.layer[from].ld, sides_.net_parameters,
          sides_.net_rows * net_.layer[to].ld, sides_.net_parameters};
}

template class Networks<Math::tf32>;
template class Networks<Math::fp32>;

}  // namespace hone::cuda
