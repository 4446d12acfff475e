#include "hone/latent/network.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

// inputs, hidden …, outputs
std::vector<int> widths(const NetworkConfig& config) {
  std::vector<int> width = {config.inputs};
  width.insert(width.end(), config.hidden.begin(), config.hidden.end());
  width.push_back(config.outputs);
  for (const int units : width)
    if (units < 1) throw InputError("every layer of a network needs at least one unit");
  return width;
}

int share(int items, int part, int parts) { return static_cast<int>(static_cast<std::int64_t>(items) * part / parts); }

}  // namespace

template <class Element>
void Tape<Element>::prepare(const NetworkConfig& config, int columns) {
  const std::size_t depth = config.hidden.size() + 1;
  value.resize(depth);
  delta.resize(depth);
  for (std::size_t l = 0; l < depth; ++l) {
    const int units = l + 1 < depth ? config.hidden[l] : config.outputs;
    value[l].resize(units, columns);
    delta[l].resize(units, columns);
  }
  own_input.resize(config.inputs, columns);
  input_delta.resize(config.inputs, columns);
  input = own_input;
}

template <class Element>
LayerStack<Element>::LayerStack(const NetworkConfig& config, Directions directions) : activation_(config.activation) {
  const std::vector<int> width = widths(config);
  for (std::size_t l = 0; l + 1 < width.size(); ++l)
    layers_.emplace_back(width[l], width[l + 1], l == 0 ? directions : Directions::both);
}

template <class Element>
void LayerStack<Element>::forward_hidden(Tape<Element>& tape, int begin, int end) const {
  for (int l = 0; l + 1 < depth(); ++l)
    layers_[l].forward(l == 0 ? tape.input.columns(begin, end) : tape.value[l - 1].view().columns(begin, end),
                       activation_, tape.value[l].view().columns(begin, end));
}

template <class Element>
void LayerStack<Element>::forward(Tape<Element>& tape, int begin, int end) const {
  forward_hidden(tape, begin, end);
  const int last = depth() - 1;
  layers_[last].forward(last == 0 ? tape.input.columns(begin, end) : tape.value[last - 1].view().columns(begin, end),
                        Activation::linear, tape.value[last].view().columns(begin, end));
}

template <class Element>
void LayerStack<Element>::forward_residual(Tape<Element>& tape, int begin, int end, Density density,
                                           const DataColumns<Real>& data, Want want, std::span<double> value) const {
  forward_hidden(tape, begin, end);
  const int last = depth() - 1;
  layers_[last].forward_residual(
      last == 0 ? tape.input.columns(begin, end) : tape.value[last - 1].view().columns(begin, end), density,
      {data.data, data.datum.subspan(begin, end - begin), data.observed},
      wants_gradient(want) ? tape.delta[last].view().columns(begin, end) : BatchView<Element>(),
      wants_value(want) ? value : std::span<double>());
}

template <class Element>
void LayerStack<Element>::backward(Tape<Element>& tape, int begin, int end) const {
  for (int l = depth() - 1; l > 0; --l)
    layers_[l].backward(tape.delta[l].view().columns(begin, end), activation_,
                        tape.value[l - 1].view().columns(begin, end), tape.delta[l - 1].view().columns(begin, end));
}

template <class Element>
void LayerStack<Element>::backward_input(Tape<Element>& tape, int begin, int end) const {
  layers_.front().backward_input(tape.delta.front().view().columns(begin, end),
                                 tape.input_delta.view().columns(begin, end));
}

template <class Real>
Network<Real>::Network(const NetworkConfig& config, const std::string& name, Directions directions,
                       Parameters<Real>& parameters)
    : config_(config), parameters_(&parameters), layers_(config, directions) {
  const std::vector<int> width = widths(config);
  const std::size_t last = width.size() - 2;
  for (std::size_t l = 0; l <= last; ++l) {
    const int weight = parameters.add(detail::format("{}.weight[{}]", name, l), width[l], width[l + 1]);
    const bool intercept = l < last || config.intercept == Intercept::learned;
    tensors_.push_back(
        {weight, intercept ? parameters.add(detail::format("{}.bias[{}]", name, l), 1, width[l + 1]) : -1});
  }
}

template <class Real>
double Network<Real>::start_scale(std::size_t layer, InitialWeights initial, double length) const {
  const bool output = layer + 1 == tensors_.size();
  if (initial == InitialWeights::paper)
    return config_.hidden.empty() ? 0.01 : output ? 1 : 1 / std::sqrt(config_.hidden[layer]);
  const double squares = layer == 0 ? (length > 0 ? length : 1) : config_.hidden[layer - 1];
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
    layers.layer(static_cast<int>(l))
        .pack(parameters.of(tensors_[l].weight),
              tensors_[l].bias < 0 ? std::span<const Real>() : parameters.of(tensors_[l].bias), part, parts);
}

template <class Real>
void Network<Real>::sum_gradient(const Tape<Real>& tape, const SumPart& sum, std::span<Real> gradient) const {
  const auto [part, parts, first, last, from] = sum;
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    const BatchView<const Real> x = (l == 0 ? tape.input : tape.value[l - 1].view()).columns(first, last);
    const BatchView<const Real> dy = tape.delta[l].view().columns(first, last);
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
    if (layer.bias >= 0) add(parameters_->tensors()[layer.bias], weight.cols, 1);
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
