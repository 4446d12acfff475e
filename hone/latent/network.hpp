#pragma once

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/latent/model_config.hpp"
#include "hone/latent/parameters.hpp"
#include "hone/optim/update.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/convolution.hpp"
#include "hone/tensor/layer.hpp"

namespace hone {

enum class Intercept { learned, none };  // of the output layer

// Fully connected layers, the last of them linear; without hidden layers a linear map. Convolutions may come before
// them (`down`), transposed convolutions after them (`up`): then the last fully connected layer makes the first small
// image.
struct NetworkConfig {
  int inputs = 1;
  std::vector<int> hidden;
  int outputs = 1;
  Activation activation = Activation::relu;  // of the hidden layers
  Intercept intercept = Intercept::learned;
  std::vector<Windows> down = {}, up = {};

  std::size_t depth() const { return down.size() + hidden.size() + 1 + up.size(); }
  int units(std::size_t layer) const;  // outputs of a layer
  int below(std::size_t layer) const { return layer == 0 ? inputs : units(layer - 1); }
  const Windows* windows(std::size_t layer) const;  // null if the layer is fully connected
};

// Part i of n of a gradient, summed over the columns [begin, end) of a tape.
struct SumPart {
  int part, parts;
  int begin, end;
  SumsFrom from = SumsFrom::zero;
};

// The values of a network's layers for a batch: one column per chain or datum. Each thread may work on its own columns.
template <class Element>
struct Tape {
  // Shapes the tape for a network; reuses its memory if that is large enough.
  void prepare(const NetworkConfig& config, int columns);
  int columns() const { return input.cols(); }

  BatchView<const Element> input;  // (inputs, n); own_input unless the caller stores it elsewhere
  Batch<Element> own_input;
  std::vector<Batch<Element>> value;  // per layer: act(a); for the output layer, a
  std::vector<Batch<Element>> delta;  // per layer: d objective / da
  Batch<Sum<Element>> input_delta;
};

// Convolutions have no 16-bit version.
template <class Element>
using AnyLayer = std::conditional_t<std::is_same_v<Element, Bf16>, std::variant<PackedLayer<Bf16>>,
                                    std::variant<PackedLayer<Element>, ConvolutionLayer<Sum<Element>>>>;

// The layers of a network, packed as Element. Const functions work on the columns [begin, end) of a tape.
template <class Element>
class LayerStack {
 public:
  using Real = Sum<Element>;

  // `directions` is for the first layer: forward if no gradient in the inputs is needed.
  LayerStack(const NetworkConfig& config, Directions directions);

  int depth() const { return static_cast<int>(layers_.size()); }
  AnyLayer<Element>& layer(std::size_t index) { return layers_[index]; }
  const AnyLayer<Element>& layer(std::size_t index) const { return layers_[index]; }

  void forward(Tape<Element>& tape, int begin, int end) const;  // input → value, all layers
  // The outputs are the natural parameters of `data`, of whose datum only [begin, end) is read. Depending on `want`,
  // writes the delta of the output layer and adds log p of column begin + c to value[c]. For a fully connected output
  // layer.
  void forward_residual(Tape<Element>& tape, int begin, int end, Density density, const DataColumns<Real>& data,
                        Want want, std::span<double> value) const;
  void backward(Tape<Element>& tape, int begin, int end) const;        // delta of the output layer → all deltas
  void backward_input(Tape<Element>& tape, int begin, int end) const;  // delta of the first layer → input_delta

 private:
  void forward_hidden(Tape<Element>& tape, int begin, int end) const;
  void forward_layer(Tape<Element>& tape, int begin, int end, int layer, Activation activation) const;

  Activation activation_;
  std::vector<AnyLayer<Element>> layers_;
};

// A network whose weights are tensors of `parameters`, which must outlive it.
template <class Real>
class Network {
 public:
  // Its tensors are NAME.weight[l] and NAME.bias[l]; layer 0 is next to the inputs. Throws InputError if a width is not
  // positive.
  Network(const NetworkConfig& config, const std::string& name, Directions directions, Parameters<Real>& parameters);

  const NetworkConfig& config() const { return config_; }
  const LayerStack<Real>& layers() const { return layers_; }

  // InitialWeights::scaled: weights N(0, s²), where the layer's outputs get a variance of one for inputs whose squared
  // length has the mean `length` (layer 0) or units whose squares have the mean one (the others); a tenth of that for
  // the output layer, so that q starts near N(0, 0.7²) and the model near independent data; biases 0.
  // InitialWeights::paper: N(0, 1) divided by the square root of the layer's width for hidden layers, N(0, 1) for the
  // output layer, 0.01 N(0, 1) for a network without hidden layers; biases alike. Each tensor has its own stream of
  // random numbers.
  void initialize(const RandomSource& random, InitialWeights initial, double length);

  // Call after the parameters change; thread i of n packs part i.
  void pack(int part = 0, int parts = 1) { pack_into(layers_, part, parts); }
  template <class Element>
  void pack_into(LayerStack<Element>& layers, int part, int parts) const;

  // The gradient of the network's parameters: the sum over some columns of a tape whose deltas are known. Thread i of n
  // computes part i; the bits do not depend on n.
  void sum_gradient(const Tape<Real>& tape, const SumPart& part, std::span<Real> gradient) const;
  // Where the numbers of part i of n stand in a gradient.
  void add_pieces(int part, int parts, std::vector<Elements>& pieces) const;

 private:
  double start_scale(std::size_t layer, InitialWeights initial, double length) const;

  struct LayerTensors {
    int weight;
    int bias;  // −1: none
  };

  NetworkConfig config_;
  Parameters<Real>* parameters_;
  std::vector<LayerTensors> tensors_;
  LayerStack<Real> layers_;
};

}  // namespace hone
