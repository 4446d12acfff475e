#pragma once

#include "hone/engine/cuda/likelihood.cuh"
#include "hone/engine/cuda/product.cuh"

namespace hone::cuda {

// A layer's place in the parameters (floats). Weights are (inputs, ld), one row an input unit, ld ≥ outputs.
struct Layer {
  int inputs, outputs, ld;
  std::size_t weight, bias;
  bool has_bias;
};

inline constexpr int max_layers = 8;

struct Net {
  int depth = 0;
  Layer layer[max_layers] = {};
  Activation activation = Activation::relu;

  int inputs() const { return layer[0].inputs; }
  int outputs() const { return layer[depth - 1].outputs; }
};

// Whether a decoder's products may be in halves: residuals of other densities may be too large for them, and kernels in
// halves know no activation but ReLU.
inline bool suits_halves(const Net& net, Density density) {
  return density == Density::bernoulli && (net.depth == 1 || net.activation == Activation::relu);
}

// What a network's layers hold for a batch, (rows, ld) each: `value` after the activation (of the last layer: before),
// `delta` d objective / da.
struct Tape {
  const float* input;
  int ld_input;
  float* value[max_layers];
  float* delta[max_layers];
};

// Several networks of one shape side by side: `nets` of a run, and `runs`. Distances in floats; those of values and
// deltas of layer l are net_rows · ld of that layer.
struct Sides {
  int nets = 1, runs = 1;
  std::size_t net_parameters = 0, net_input = 0, net_rows = 0, run = 0;  // a run's distance holds for everything of it
};

// Where a batch is compared with data: row m belongs to datum m / rows_per_datum.
struct Comparison {
  Density density;
  const float* x;  // (data, ldx)
  int ldx;
  int rows_per_datum;
  const int* alive;  // null: all; else rows that are not have residuals of zero
  float* partial;    // (tiles, rows): sums of log p over a tile's pixels; null: not wanted
  bool residuals;
};

// Epilogues of products (product.cuh). What they read nobody writes meanwhile, and `__ldg` says so: else every load
// would wait for the store before it. Those with choices have a type for each, whose numbers know no other.
template <Math math, Activation fixed>
struct ActivatedBy;
template <Math math>
struct Activated {
  static constexpr bool sums_rows = false;
  float* y;
  const float* bias;  // null: none
  int ld;
  Activation activation;

  __device__ void shift(std::size_t n, const Side& net, std::size_t r, const Side& run) {
    y += n * net.c + r * run.c;
    if (bias) bias += n * net.b + r * run.b;
  }
  __device__ float* row(int m) const { return y + static_cast<std::size_t>(m) * ld; }
  __device__ __forceinline__ void stored(Activation activation, float* to, int n, float c, bool inside) const {
    const float y = activate<math>(activation, bias ? c + __ldg(bias + n) : c);
    if (inside) to[n] = y;
  }
  __device__ void operator()(float* to, int n, float c, bool inside) const { stored(activation, to, n, c, inside); }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    switch (activation) {
      case Activation::relu: return f(ActivatedBy<math, Activation::relu>{*this});
      case Activation::linear: return f(ActivatedBy<math, Activation::linear>{*this});
      case Activation::tanh: return f(ActivatedBy<math, Activation::tanh>{*this});
      case Activation::softplus: return f(ActivatedBy<math, Activation::softplus>{*this});
    }
  }
};
template <Math math, Activation fixed>
struct ActivatedBy : Activated<math> {
  __device__ void operator()(float* to, int n, float c, bool inside) const { this->stored(fixed, to, n, c, inside); }
};

// dx = (dy Wᵀ) ⊙ act'(·)
template <Math math, Activation fixed>
struct SlopedBy;
template <Math math>
struct Sloped {
  static constexpr bool sums_rows = false;
  float* y;
  const float* h;  // null: no activation below
  int ld;
  Activation activation;

  __device__ void shift(std::size_t n, const Side& net, std::size_t r, const Side& run) {
    y += n * net.c + r * run.c;
    if (h) h += n * net.c + r * run.c;
  }
  __device__ std::size_t row(int m) const { return static_cast<std::size_t>(m) * ld; }
  __device__ __forceinline__ void stored(Activation activation, std::size_t to, int n, float c, bool inside) const {
    const float slope_here = activation == Activation::linear ? 1.0f : slope<math>(activation, __ldg(h + to + n));
    if (inside) y[to + n] = c * slope_here;
  }
  __device__ void operator()(std::size_t to, int n, float c, bool inside) const {
    stored(h ? activation : Activation::linear, to, n, c, inside);
  }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    switch (h ? activation : Activation::linear) {
      case Activation::relu: return f(SlopedBy<math, Activation::relu>{*this});
      case Activation::linear: return f(SlopedBy<math, Activation::linear>{*this});
      case Activation::tanh: return f(SlopedBy<math, Activation::tanh>{*this});
      case Activation::softplus: return f(SlopedBy<math, Activation::softplus>{*this});
    }
  }
};
template <Math math, Activation fixed>
struct SlopedBy : Sloped<math> {
  __device__ void operator()(std::size_t to, int n, float c, bool inside) const {
    this->stored(fixed, to, n, c, inside);
  }
};

template <Math math, Density density, bool residuals>
struct ComparedBy;
template <Math math>
struct Compared {
  static constexpr bool sums_rows = true;
  Comparison data;
  float* y;  // residuals
  const float* bias;
  int ld, rows;
  std::size_t run_stride;

  __device__ void shift(std::size_t, const Side&, std::size_t r, const Side& run) {
    y += r * run.c;
    if (bias) bias += r * run.b;
    data.x += r * run_stride;
    if (data.alive) data.alive += r * run_stride;
    if (data.partial) data.partial += r * run_stride;
  }
  struct Row {
    const float* x;
    float* y;
    bool alive;
  };
  __device__ Row row(int m) const {
    return {data.x + static_cast<std::size_t>(m / data.rows_per_datum) * data.ldx, y + static_cast<std::size_t>(m) * ld,
            !data.alive || data.alive[m] != 0};
  }
  __device__ float operator()(const Row& to, int n, float c, bool inside) const {
    return compared(data.density, data.residuals, to, n, c, inside);
  }
  __device__ __forceinline__ float compared(Density density, bool residuals, const Row& to, int n, float c,
                                            bool inside) const {
    const float a = bias ? c + __ldg(bias + n) : c, x = __ldg(to.x + n);
    if (residuals) {
      const float r = to.alive ? residual<math>(density, a, x) : 0.0f;
      if (inside) to.y[n] = r;
    }
    return data.partial && inside ? log_probability<math>(density, a, x) : 0.0f;
  }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    switch (data.density) {
      case Density::bernoulli: return with<Density::bernoulli>(f);
      case Density::gaussian: return with<Density::gaussian>(f);
      case Density::poisson: return with<Density::poisson>(f);
    }
  }
  template <Density density, class F>
  __device__ __forceinline__ void with(F f) const {
    data.residuals ? f(ComparedBy<math, density, true>{*this}) : f(ComparedBy<math, density, false>{*this});
  }
  __device__ void row_sum(int m, float sum) const {
    if (data.partial) data.partial[static_cast<std::size_t>(blockIdx.x) * rows + m] = sum;
  }
};

template <Math math, Density density, bool residuals>
struct ComparedBy : Compared<math> {
  __device__ float operator()(const typename Compared<math>::Row& to, int n, float c, bool inside) const {
    return this->compared(density, residuals, to, n, c, inside);
  }
};

// The general path: one launch a product.
template <Math math, class T>
class Networks {
 public:
  Networks(const Net& net, const float* parameters, const Sides& sides, cudaStream_t stream)
      : net_(net), parameters_(parameters), sides_(sides), stream_(stream) {}

  static int partial_tiles(int pixels) { return ceil_div(pixels, T::n); }

  // input → values of the layers [from, to)
  void forward(const Tape& tape, int rows, int from, int to) const {
    for (int l = from; l < to; ++l) {
      const Layer& layer = net_.layer[l];
      const Activation activation = l + 1 < net_.depth ? net_.activation : Activation::linear;
      launch_product<T, Along::n, math>(
          below(tape, rows, l), sides_.nets, net_side(l, l - 1), sides_.runs, run_side(),
          Activated<math>{tape.value[l], bias(layer), layer.ld, activation}, stream_);
    }
  }

  // input → residuals as the last layer's delta and sums of log p, as `data` wants them
  void compare(const Tape& tape, int rows, const Comparison& data) const {
    const int last = net_.depth - 1;
    forward(tape, rows, 0, last);
    const Layer& layer = net_.layer[last];
    launch_product<T, Along::n, math>(
        below(tape, rows, last), 1, {}, sides_.runs, run_side(),
        Compared<math>{data, tape.delta[last], bias(layer), layer.ld, rows, sides_.run}, stream_);
  }

  // the last layer's delta → those of the hidden layers
  void backward(const Tape& tape, int rows) const {
    for (int l = net_.depth - 1; l > 0; --l)
      launch_product<T, Along::k, math>(
          above(tape, rows, l), sides_.nets, net_side(l - 1, l), sides_.runs, run_side(),
          Sloped<math>{tape.delta[l - 1], tape.value[l - 1], net_.layer[l - 1].ld, net_.activation}, stream_);
  }

  // input → d log p / d input, (rows, ld), and what `data` wants
  void gradient(const Tape& tape, int rows, const Comparison& data, float* slope, int ld) const {
    compare(tape, rows, data);
    backward(tape, rows);
    backward_input(tape, rows, slope, ld);
  }

  // the first layer's delta → d objective / d input, (rows, ld)
  void backward_input(const Tape& tape, int rows, float* slope, int ld) const {
    launch_product<T, Along::k, math>(above(tape, rows, 0), 1, {}, sides_.runs, run_side(),
                                                Sloped<math>{slope, nullptr, ld, Activation::linear}, stream_);
  }

 private:
  const float* bias(const Layer& layer) const { return layer.has_bias ? parameters_ + layer.bias : nullptr; }
  Product below(const Tape& tape, int rows, int l) const {
    const Layer& layer = net_.layer[l];
    return {l == 0 ? tape.input : tape.value[l - 1],
            parameters_ + layer.weight,
            l == 0 ? tape.ld_input : net_.layer[l - 1].ld,
            layer.ld,
            rows,
            layer.outputs,
            layer.inputs};
  }
  Product above(const Tape& tape, int rows, int l) const {
    const Layer& layer = net_.layer[l];
    return {tape.delta[l], parameters_ + layer.weight, layer.ld, layer.ld, rows, layer.inputs, layer.outputs};
  }
  Side run_side() const { return {sides_.run, sides_.run, sides_.run}; }
  Side net_side(int to, int from) const {  // of a product that makes layer `to`'s numbers of layer `from`'s
    return {from < 0 ? sides_.net_input : sides_.net_rows * net_.layer[from].ld, sides_.net_parameters,
            sides_.net_rows * net_.layer[to].ld};
  }

  const Net& net_;
  const float* parameters_;
  Sides sides_;
  cudaStream_t stream_;
};

}  // namespace hone::cuda
