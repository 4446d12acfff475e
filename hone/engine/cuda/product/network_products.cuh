#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// What Networks has for itself: what layers hold, (rows, ld), and copies of the weights, for both directions with
// neighbours along k. Rows begin with a line of the cache. The first layer's input is floats, and so are its weights.
template <class E>
struct NetworkRoom {
  E* value[max_layers];     // of hidden layers
  E* delta[max_layers];     // of hidden layers, and of the last one where rows are compared with data
  E* along[max_layers];     // W, (inputs, ld of outputs), where the way back goes through it
  E* across[max_layers];    // Wᵀ, (outputs, ld of inputs), but for the first layer:
  float* first_across;      // (outputs, ld of inputs)
  std::size_t net_weights;  // floats from a network's copies to the next one's

  static int ld(int units) { return round_up(units, 128 / static_cast<int>(sizeof(E))); }
};

// For so many rows of each of the networks; take(bytes) hands out memory that is zero.
template <class E, class Take>
NetworkRoom<E> network_room(const Net& net, std::size_t rows, int nets, bool compares, bool gradients, Take take) {
  NetworkRoom<E> room = {};
  const auto size = [&](int count, int units) { return sizeof(E) * count * static_cast<std::size_t>(room.ld(units)); };
  const auto back = [&](int l) { return gradients && (l > 0 || compares); };  // only a decoder's goes on to its input
  const auto across = [&](int l) {
    const Layer& layer = net.layer[l];
    return l > 0 ? size(layer.outputs, layer.inputs)
                 : sizeof(float) * layer.outputs * NetworkRoom<float>::ld(layer.inputs);
  };
  std::size_t bytes = 0;  // of one network's copies
  for (int l = 0; l < net.depth; ++l) {
    const Layer& layer = net.layer[l];
    const bool last = l + 1 == net.depth;
    const std::size_t values = nets * rows * size(1, layer.outputs);
    if (!last) room.value[l] = reinterpret_cast<E*>(take(values));
    if (gradients && (!last || compares)) room.delta[l] = reinterpret_cast<E*>(take(values));
    if (back(l)) bytes += size(layer.inputs, layer.outputs);
    bytes += across(l);
  }
  char* copies = take(bytes * nets);
  room.net_weights = bytes / sizeof(float);
  const auto next = [&](std::size_t some) { return std::exchange(copies, copies + some); };
  for (int l = 0; l < net.depth; ++l) {
    const Layer& layer = net.layer[l];
    if (back(l)) room.along[l] = reinterpret_cast<E*>(next(size(layer.inputs, layer.outputs)));
    if (l == 0)
      room.first_across = reinterpret_cast<float*>(next(across(l)));
    else
      room.across[l] = reinterpret_cast<E*>(next(across(l)));
  }
  return room;
}

// Networks side by side, one launch per product, with a room of their own: E is __half where halves suit
// (`suits_halves`, one network a run), Tf32 in tf32 and float in float32. Of the tape they use the input; `forward`
// writes the last layer's values there and `backward` begins with the delta there, where rows are not compared with
// data; all else is there after `record`.
template <Math math, class E>
class Networks {
 public:
  Networks(const Net& net, const float* parameters, const Tape& tape, const NetworkRoom<E>& room, const Sides& sides,
           cudaStream_t stream)
      : net_(net), parameters_(parameters), tape_(tape), room_(room), sides_(sides), stream_(stream) {}

  void prepare() const;  // after every change of the parameters
  // input → values of the layers
  void forward(int rows) const;
  // input → residuals as the last layer's delta and sums of log p, as `data` wants them
  void compare(int rows, const Comparison& data) const;
  // the last layer's delta → those of the hidden layers
  void backward(int rows) const;
  // input → d log p / d input, (rows, ld), and what `data` wants
  void compute_gradient(int rows, const Comparison& data, float* gradient, int ld) const;
  void record(int rows) const;  // what the layers hold → the tape

 private:
  void forward_hidden(int rows) const;
  template <class Epilogue>
  void launch_forward(int rows, int l, const Epilogue& epilogue, std::size_t net_outputs) const;
  template <class Epilogue>
  void launch_backward(int rows, int l, const Epilogue& epilogue) const;
  const float* bias(int l) const { return net_.layer[l].has_bias ? parameters_ + net_.layer[l].bias : nullptr; }
  int ld(int l) const { return room_.ld(net_.layer[l].outputs); }
  // from a network's values of a layer to the next one's, in floats
  std::size_t net_values(int l) const { return sides_.net_rows * ld(l) * sizeof(E) / sizeof(float); }

  const Net& net_;
  const float* parameters_;
  Tape tape_;
  NetworkRoom<E> room_;
  Sides sides_;
  cudaStream_t stream_;
};

// How a network's products are made, and the memory that is needed for it.
class ProductPath {
 public:
  ProductPath() = default;
  ProductPath(Math math, bool halves) : math_(math), halves_(halves) {}

  std::string words() const { return halves_ ? ", in halves" : ""; }

  // For so many rows of each network; `compares`: with data; take(bytes) hands out memory that is zero.
  template <class Take>
  void take_room(const Net& net, std::size_t rows, int nets, bool compares, bool gradients, Take take) {
    halves_ = halves_ && compares;  // others' last deltas come as floats
    if (halves_)
      half_ = network_room<__half>(net, rows, nets, compares, gradients, take);
    else if (math_ == Math::tf32)
      tf32_ = network_room<Tf32>(net, rows, nets, compares, gradients, take);
    else
      float_ = network_room<float>(net, rows, nets, compares, gradients, take);
  }

  // The same in memory that the path keeps.
  void allocate_room(const Net& net, std::size_t rows, int nets, bool compares, bool gradients) {
    take_room(net, rows, nets, compares, gradients, [&](std::size_t bytes) {
      memory_.emplace_back(bytes);
      return memory_.back().data();
    });
  }

  // f(networks)
  template <class F>
  void with(const Net& net, const float* parameters, const Tape& tape, const Sides& sides, cudaStream_t stream,
            F f) const {
    using enum Math;
    if (halves_) return f(Networks<tf32, __half>(net, parameters, tape, half_, sides, stream));
    if (math_ == tf32) return f(Networks<tf32, Tf32>(net, parameters, tape, tf32_, sides, stream));
    f(Networks<fp32, float>(net, parameters, tape, float_, sides, stream));
  }

 private:
  Math math_ = Math::tf32;
  bool halves_ = false;
  NetworkRoom<__half> half_ = {};
  NetworkRoom<Tf32> tf32_ = {};
  NetworkRoom<float> float_ = {};
  std::vector<Memory<char>> memory_;
};

}  // namespace hone::cuda
