#pragma once

#include <type_traits>
#include <variant>
#include <vector>

#include "hone/engine/cuda/convolution/window_scratch.cuh"
#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// The arrays of Networks: what layers hold, (rows, ld), and copies of the weights, for both directions with neighbours
// along k. Rows begin with a line of the cache. The first layer's input is floats, and so are its weights unless it is
// a convolution.
template <class E>
struct NetworkScratch {
  E* value[max_layers];   // of hidden layers
  E* delta[max_layers];   // of hidden layers, and of the last one if rows are compared with data
  E* along[max_layers];   // W, (inputs, ld of outputs), if the way back goes through it
  E* across[max_layers];  // Wᵀ, (outputs, ld of inputs), except for the first layer:
  float* first_across;    // (outputs, ld of inputs)
  WindowScratch windows;  // of convolutions

  static int ld(int units) { return round_up(units, 128 / static_cast<int>(sizeof(E))); }
};

struct ScratchShape {
  std::size_t rows;       // of each network
  int nets = 1;           // of a run
  bool compares = false;  // with data; then gradients go on to the input
  bool gradients = false;
  bool outputs = false;  // the last layer's, where no product computes the likelihood
};

template <class T>
struct Images;  // convolution/passes.cuh

// Networks side by side, one launch per product, with scratch memory of their own. E is __half if halves suit
// (`suits_halves`), Tf32 in tf32 and float in float32. Of the tape they use the input; `forward` writes the last
// layer's values there, and `backward` begins with the delta there unless rows are compared with data. `record` writes
// all else.
template <class E>
class Networks {
 public:
  Networks(const Net& net, const float* parameters, const Tape& tape, const NetworkScratch<E>& scratch,
           const Sides& sides, cudaStream_t stream)
      : net_(net), parameters_(parameters), tape_(tape), scratch_(scratch), sides_(sides), stream_(stream) {}

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
  static constexpr Math math = std::is_same_v<E, float> ? Math::fp32 : Math::tf32;

  void forward_hidden(int rows) const;
  template <class Epilogue>
  void launch_forward(int rows, int l, const Epilogue& epilogue, std::size_t net_outputs) const;
  template <class Epilogue>
  void launch_backward(int rows, int l, const Epilogue& epilogue) const;
  template <class From, class To, bool back>
  void convolve(int rows, int l, const Images<const From>& from, const Layered<math, To, back>& finish,
                std::size_t net_to) const;
  const float* bias(int l) const { return net_.layer[l].has_bias ? parameters_ + net_.layer[l].bias : nullptr; }
  int ld(int l) const { return scratch_.ld(net_.layer[l].outputs); }
  Beside beside(const Distances& net) const {
    return {.nets = sides_.nets, .runs = sides_.runs, .net = net, .run = sides_.of_run()};
  }
  // Floats from a network's copy of weights, or values, to the next one's.
  template <class T>
  static std::size_t floats(std::size_t rows, int units) {
    return rows * NetworkScratch<T>::ld(units) * sizeof(T) / sizeof(float);
  }
  std::size_t net_values(int l) const { return floats<E>(sides_.net_rows, net_.layer[l].outputs); }
  std::size_t net_along(int l) const { return floats<E>(net_.layer[l].weight_rows(), net_.layer[l].weight_columns()); }
  template <class A>
  std::size_t net_across(int l) const {
    return floats<A>(net_.layer[l].weight_columns(), net_.layer[l].weight_rows());
  }

  const Net& net_;
  const float* parameters_;
  Tape tape_;
  NetworkScratch<E> scratch_;
  Sides sides_;
  cudaStream_t stream_;
};

// The numbers by which a network's products are computed, and the scratch memory for them.
class ProductPath {
 public:
  ProductPath() = default;
  ProductPath(Math math, bool halves) {
    if (halves)
      scratch_ = NetworkScratch<__half>();
    else if (math == Math::tf32)
      scratch_ = NetworkScratch<Tf32>();
  }

  template <class Take>  // take(bytes) hands out memory that is zero
  void take_scratch(const Net& net, const ScratchShape& shape, Take take) {
    const auto array = [&]<class T>(T*& to, std::size_t rows, int units) {
      to = reinterpret_cast<T*>(take(sizeof(T) * shape.nets * rows * NetworkScratch<T>::ld(units)));
    };
    const auto fill = [&](auto& scratch) {
      for (int l = 0; l < net.depth; ++l) {
        const Layer& layer = net.layer[l];
        const bool last = l + 1 == net.depth;
        if (!last) array(scratch.value[l], shape.rows, layer.outputs);
        if ((shape.gradients && (!last || shape.compares)) || (last && shape.outputs))
          array(scratch.delta[l], shape.rows, layer.outputs);
        const int rows = layer.weight_rows(), columns = layer.weight_columns();
        if (shape.gradients && (l > 0 || shape.compares)) array(scratch.along[l], rows, columns);
        l == 0 && !layer.convolves() ? array(scratch.first_across, columns, rows)
                                     : array(scratch.across[l], columns, rows);
        if (layer.convolves()) scratch.windows.cover(layer.windows, shape.rows);
      }
      if (net.convolves())
        scratch.windows.numbers = reinterpret_cast<float*>(take(sizeof(float) * shape.nets * scratch.windows.net));
    };
    std::visit(fill, scratch_);
  }
  // The same in memory that the path keeps.
  void allocate_scratch(const Net& net, const ScratchShape& shape) {
    take_scratch(net, shape, [&](std::size_t bytes) { return memory_.emplace_back(bytes).data(); });
  }

  template <class F>  // f(networks)
  void with(const Net& net, const float* parameters, const Tape& tape, const Sides& sides, cudaStream_t stream,
            F f) const {
    std::visit([&](const auto& scratch) { f(Networks(net, parameters, tape, scratch, sides, stream)); }, scratch_);
  }

 private:
  std::variant<NetworkScratch<float>, NetworkScratch<Tf32>, NetworkScratch<__half>> scratch_;
  std::vector<Memory<char>> memory_;
};

}  // namespace hone::cuda
