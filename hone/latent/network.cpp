#include "hone/latent/network.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

void check(const NetworkConfig& config) {
  for (std::size_t l = 0; l < config.depth(); ++l)
    if (config.below(l) < 1 || config.units(l) < 1)
      throw InputError("every layer of a network needs at least one unit");
}

template <class Element>
AnyLayer<Element> make_layer(const NetworkConfig& config, std::size_t l, Directions directions) {
  if constexpr (!std::is_same_v<Element, Bf16>)
    if (const Windows* windows = config.windows(l))
      return ConvolutionLayer<Element>(*windows, l < config.down.size() ? Way::down : Way::up, directions);
  return PackedLayer<Element>(config.below(l), config.units(l), directions);
}

}  // namespace

int NetworkConfig::units(std::size_t layer) const {
  if (layer < down.size()) return down[layer].small();
  layer -= down.size();
  if (layer < hidden.size()) return hidden[layer];
  layer -= hidden.size();
  if (layer > 0) return up[layer - 1].large();
  return up.empty() ? outputs : up.front().small();
}

const Windows* NetworkConfig::windows(std::size_t layer) const {
  if (layer < down.size()) return &down[layer];
  const std::size_t dense = down.size() + hidden.size() + 1;
  return layer < dense ? nullptr : &up[layer - dense];
}

template <class Element>
void Tape<Element>::prepare(const NetworkConfig& config, int columns) {
  const std::size_t depth = config.depth();
  value.resize(depth);
  delta.resize(depth);
  for (std::size_t l = 0; l < depth; ++l) {
    value[l].resize(config.units(l), columns);
    delta[l].resize(config.units(l), columns);
  }
  own_input.resize(config.inputs, columns);
  input_delta.resize(config.inputs, columns);
  input = own_input;
}

template <class Element>
LayerStack<Element>::LayerStack(const NetworkConfig& config, Directions directions) : activation_(config.activation) {
  check(config);
  for (std::size_t l = 0; l < config.depth(); ++l)
    layers_.push_back(make_layer<Element>(config, l, l == 0 ? directions : Directions::both));
}

template <class Element>
void LayerStack<Element>::forward_hidden(Tape<Element>& tape, int begin, int end) const {
  for (int l = 0; l + 1 < depth(); ++l) forward_layer(tape, begin, end, l, activation_);
}

template <class Element>
void LayerStack<Element>::forward_layer(Tape<Element>& tape, int begin, int end, int l, Activation activation) const {
  const BatchView<const Element> x = l == 0 ? tape.input : tape.value[l - 1].view();
  std::visit(
      [&](const auto& layer) {
        layer.forward(x.columns(begin, end), activation, tape.value[l].view().columns(begin, end));
      },
      layers_[l]);
}

template <class Element>
void LayerStack<Element>::forward(Tape<Element>& tape, int begin, int end) const {
  forward_hidden(tape, begin, end);
  forward_layer(tape, begin, end, depth() - 1, Activation::linear);
}

template <class Element>
void LayerStack<Element>::forward_residual(Tape<Element>& tape, int begin, int end, Density density,
                                           const DataColumns<Real>& data, Want want, std::span<double> value) const {
  forward_hidden(tape, begin, end);
  const int last = depth() - 1;
  std::get<PackedLayer<Element>>(layers_[last])
      .forward_residual(last == 0 ? tape.input.columns(begin, end) : tape.value[last - 1].view().columns(begin, end),
                        density, {data.data, data.datum.subspan(begin, end - begin), data.observed},
                        wants_gradient(want) ? tape.delta[last].view().columns(begin, end) : BatchView<Element>(),
                        wants_value(want) ? value : std::span<double>());
}

template <class Element>
void LayerStack<Element>::backward(Tape<Element>& tape, int begin, int end) const {
  for (int l = depth() - 1; l > 0; --l)
    std::visit(
        [&](const auto& layer) {
          layer.backward(tape.delta[l].view().columns(begin, end), activation_,
                         tape.value[l - 1].view().columns(begin, end), tape.delta[l - 1].view().columns(begin, end));
        },
        layers_[l]);
}

template <class Element>
void LayerStack<Element>::backward_input(Tape<Element>& tape, int begin, int end) const {
  std::visit(
      [&](const auto& layer) {
        layer.backward_input(tape.delta.front().view().columns(begin, end),
                             tape.input_delta.view().columns(begin, end));
      },
      layers_.front());
}

template <class Real>
Network<Real>::Network(const NetworkConfig& config, const std::string& name, Directions directions,
                       Parameters<Real>& parameters)
    : config_(config), parameters_(&parameters), layers_(config, directions) {
  for (std::size_t l = 0; l < config.depth(); ++l) {
    const Windows* w = config.windows(l);
    const bool down = l < config.down.size();
    const int rows = !w     ? config.below(l)
                     : down ? w->depth()
                            : w->coarse,
              cols = !w     ? config.units(l)
                     : down ? w->coarse
                            : w->depth(),
              biases = !w     ? config.units(l)
                       : down ? w->coarse
                              : w->fine;
    const int weight = parameters.add(detail::format("{}.weight[{}]", name, l), rows, cols);
    const bool intercept = l + 1 < config.depth() || config.intercept == Intercept::learned;
    tensors_.push_back({weight, intercept ? parameters.add(detail::format("{}.bias[{}]", name, l), 1, biases) : -1});
  }
}

template <class Real>
double Network<Real>::start_scale(std::size_t layer, InitialWeights initial, double length) const {
  const bool output = layer + 1 == tensors_.size();
  if (initial == InitialWeights::paper)
    return config_.hidden.empty() ? 0.01 : output ? 1 : 1 / std::sqrt(config_.hidden[layer]);
  double squares = layer == 0 ? (length > 0 ? length : 1) : config_.below(layer);  // the mean of |inputs|²
  if (const Windows* w = config_.windows(layer))  // of the inputs that meet in one output: a pixel up has four windows
    squares *= (layer < config_.down.size() ? w->depth() : 4.0 * w->coarse) / config_.below(layer);
  const double gain = config_.activation == Activation::relu ? 2 : 1;  // a ReLU halves the mean square
  return output ? 0.1 / std::sqrt(squares) : std::sqrt(gain / squares);
}

template <class Real>
void Network<Real>::initialize(const RandomSource& random, InitialWeights initial, double length) {
  std::vector<double> normal;
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    const double scale = start_scale(l, initial, length);
    for (const int tensor : {tensors_[l].weight, tensors_[l].bias}) {
      if (tensor < 0) continue;
      const std::span<Real> values = parameters_->of(tensor);
      if (initial == InitialWeights::scaled && tensor == tensors_[l].bias) {
        std::ranges::fill(values, Real(0));
        continue;
      }
      normal.resize(values.size());
      random.normals({.purpose = Purpose::start, .step = static_cast<std::uint32_t>(tensor)}, normal);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(scale * normal[i]);
    }
  }
}

template <class Real>
template <class Element>
void Network<Real>::pack_into(LayerStack<Element>& layers, int part, int parts) const {
  const Parameters<Real>& parameters = *parameters_;
  for (std::size_t l = 0; l < tensors_.size(); ++l)
    std::visit(
        [&](auto& layer) {
          layer.pack(parameters.of(tensors_[l].weight),
                     tensors_[l].bias < 0 ? std::span<const Real>() : parameters.of(tensors_[l].bias), part, parts);
        },
        layers.layer(l));
}

template <class Real>
void Network<Real>::sum_gradient(const Tape<Real>& tape, const SumPart& sum, std::span<Real> gradient) const {
  const auto [part, parts, first, last, from] = sum;
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    const BatchView<const Real> x = (l == 0 ? tape.input : tape.value[l - 1].view()).columns(first, last);
    const BatchView<const Real> dy = tape.delta[l].view().columns(first, last);
    if (const auto* layer = std::get_if<ConvolutionLayer<Real>>(&layers_.layer(l))) {
      layer->sum_gradient(x, dy, part, parts, parameters_->of(tensors_[l].weight, gradient),
                          tensors_[l].bias < 0 ? std::span<Real>() : parameters_->of(tensors_[l].bias, gradient), from);
      continue;
    }
    weight_gradient(x, dy, share(x.rows(), part, parts), share(x.rows(), part + 1, parts),
                    parameters_->of(tensors_[l].weight, gradient), simd_level(), from);
    if (tensors_[l].bias >= 0)
      bias_gradient(dy, share(dy.rows(), part, parts), share(dy.rows(), part + 1, parts),
                    parameters_->of(tensors_[l].bias, gradient), from);
  }
}

template <class Real>
void Network<Real>::add_pieces(int part, int parts, std::vector<Elements>& pieces) const {
  const auto add = [&](const Tensor& tensor, int rows, int row_size) {
    const auto at = [&](int row) {
      return tensor.offset + static_cast<std::size_t>(row) * static_cast<std::size_t>(row_size);
    };
    pieces.push_back({at(share(rows, part, parts)), at(share(rows, part + 1, parts))});
  };
  for (const LayerTensors& layer : tensors_) {
    const Tensor& weight = parameters_->tensors()[layer.weight];
    add(weight, weight.rows, weight.cols);
    if (layer.bias >= 0) add(parameters_->tensors()[layer.bias], parameters_->tensors()[layer.bias].cols, 1);
  }
}

template struct Tape<float>;
template struct Tape<double>;
template struct Tape<Bf16>;
template class LayerStack<float>;
template class LayerStack<double>;
template class LayerStack<Bf16>;
template class Network<float>;
template class Network<double>;
template void Network<float>::pack_into(LayerStack<float>&, int, int) const;
template void Network<float>::pack_into(LayerStack<Bf16>&, int, int) const;
template void Network<double>::pack_into(LayerStack<double>&, int, int) const;

}  // namespace hone
