#include "hone/tensor/layer.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "hone/base/clones.hpp"

namespace hone {
namespace {

Finish forward_finish(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return Finish::relu;
    case Activation::tanh:
      return Finish::tanh;
    case Activation::softplus:
      return Finish::softplus;
    case Activation::linear:
      break;
  }
  return Finish::linear;
}

Finish backward_finish(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return Finish::derivative_relu;
    case Activation::tanh:
      return Finish::derivative_tanh;
    case Activation::softplus:
      return Finish::derivative_softplus;
    case Activation::linear:
      break;
  }
  return Finish::linear;
}

Finish residual_finish(Density density) {
  switch (density) {
    case Density::bernoulli:
      return Finish::bernoulli;
    case Density::gaussian:
      return Finish::gaussian;
    case Density::poisson:
      return Finish::poisson;
    default:
      throw std::logic_error("no product computes this density");
  }
}

HONE_CLONES void round_numbers(std::span<const double> from, float* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
}
HONE_CLONES void round_numbers(std::span<const double> from, Bf16* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = to_bf16(static_cast<float>(from[i]));
}
void round_numbers(std::span<const double> from, double* to) { std::copy(from.begin(), from.end(), to); }

}  // namespace

template <class Element>
PackedLayer<Element>::PackedLayer(int inputs, int outputs, Directions directions, SimdLevel level)
    : kernels_(kernels_of<Element>(level)),
      inputs_(inputs),
      outputs_(outputs),
      forward_weights_(row_count(kernels_.packed_size(outputs, inputs)), 1),
      backward_weights_(directions == Directions::both ? row_count(kernels_.packed_size(inputs, outputs)) : 0, 1),
      bias_(outputs, 1),
      no_bias_(inputs, 1) {}

template <class Element>
void PackedLayer<Element>::pack(std::span<const Real> weights, std::span<const Real> bias, int part, int parts) {
  const auto row = static_cast<std::size_t>(outputs_);
  kernels_.pack({.units = outputs_,
                 .depth = inputs_,
                 .from = weights.data(),
                 .unit_stride = 1,
                 .depth_stride = row,
                 .part = part,
                 .parts = parts},
                forward_weights_.view().data());
  if (backward_weights_.rows() > 0)
    kernels_.pack({.units = inputs_,
                   .depth = outputs_,
                   .from = weights.data(),
                   .unit_stride = row,
                   .depth_stride = 1,
                   .part = part,
                   .parts = parts},
                  backward_weights_.view().data());
  if (part == 0) std::copy(bias.begin(), bias.end(), bias_.view().data());
}

template <class Element>
Product<Element> PackedLayer<Element>::forward_product(BatchView<const Element> x, BatchView<Element> y,
                                                       Finish finish) const {
  return {.depth = inputs_,
          .units = outputs_,
          .columns = x.cols(),
          .weights = forward_weights_.view().data(),
          .bias = bias_.view().data(),
          .x = x.data(),
          .x_stride = x.stride(),
          .y = y.data(),
          .y_stride = y.stride(),
          .finish = finish,
          .near_bytes = near_weight_bytes()};
}

template <class Element>
Product<Element> PackedLayer<Element>::backward_product(BatchView<const Element> dy, BatchView<Element> dx,
                                                        Finish finish) const {
  return {.depth = outputs_,
          .units = inputs_,
          .columns = dy.cols(),
          .weights = backward_weights_.view().data(),
          .bias = no_bias_.view().data(),
          .x = dy.data(),
          .x_stride = dy.stride(),
          .y = dx.data(),
          .y_stride = dx.stride(),
          .finish = finish,
          .near_bytes = near_weight_bytes()};
}

template <class Element>
void PackedLayer<Element>::forward(BatchView<const Element> x, Activation activation, BatchView<Element> y) const {
  kernels_.multiply(forward_product(x, y, forward_finish(activation)));
}

template <class Element>
void PackedLayer<Element>::forward_residual(BatchView<const Element> x, Density density, const DataColumns<Real>& data,
                                            BatchView<Element> residual, std::span<double> value) const {
  Product<Element> product = forward_product(x, residual, residual_finish(density));
  product.data = data.data.data();
  product.data_stride = data.data.stride();
  product.datum = data.datum.data();
  product.observed = data.observed;
  product.value = value.data();
  kernels_.multiply(product);
}

template <class Element>
void PackedLayer<Element>::backward(BatchView<const Element> dy, Activation below, BatchView<const Element> x,
                                    BatchView<Element> dx) const {
  Product<Element> product = backward_product(dy, dx, backward_finish(below));
  product.h = x.data();
  kernels_.multiply(product);
}

template <class Element>
void PackedLayer<Element>::backward_input(BatchView<const Element> dy, BatchView<Real> dx) const {
  Product<Element> product = backward_product(dy, {nullptr, dx.rows(), dx.cols()}, Finish::sum);
  product.sum = dx.data();
  kernels_.multiply(product);
}

int gradient_columns() {
  constexpr int panel_bytes = 320;  // of one column, at the widest level
  return near_weight_bytes() > 0 ? near_weight_bytes() / panel_bytes : std::numeric_limits<int>::max();
}

template <class Real>
void weight_gradient(BatchView<const Real> x, BatchView<const Real> dy, int begin, int end, std::span<Real> weights,
                     SimdLevel level, SumsFrom from, int at_once) {
  for (int first = 0, last = 0; first == 0 || first < dy.cols(); first = last) {
    last = dy.cols() - first > at_once ? first + at_once : dy.cols();
    kernels_of<Real>(level).outer_product({.units = dy.rows(),
                                           .columns = last - first,
                                           .x = x.column(first),
                                           .x_stride = x.stride(),
                                           .dy = dy.column(first),
                                           .dy_stride = dy.stride(),
                                           .begin = begin,
                                           .end = end,
                                           .gradient = weights.data(),
                                           .onto = first > 0 || from == SumsFrom::before});
    if (last == first) return;  // no columns
  }
}

template <class Real>
void bias_gradient(BatchView<const Real> dy, int begin, int end, std::span<Real> bias, SumsFrom from) {
  if (from == SumsFrom::zero) std::fill(bias.begin() + begin, bias.begin() + end, Real(0));
  for (int column = 0; column < dy.cols(); ++column)
    for (int unit = begin; unit < end; ++unit) bias[unit] += dy(unit, column);
}

template <class Element>
void fill_columns(MatrixView<const double> from, BatchView<Element> to) {
  for (int column = 0; column < from.cols(); ++column) {
    Element* const out = to.column(column);
    round_numbers(from.column(column), out);
    std::fill(out + from.rows(), out + to.stride(), Element{});
  }
}

template class PackedLayer<float>;
template class PackedLayer<double>;
template class PackedLayer<Bf16>;
template void weight_gradient(BatchView<const float>, BatchView<const float>, int, int, std::span<float>, SimdLevel,
                              SumsFrom, int);
template void weight_gradient(BatchView<const double>, BatchView<const double>, int, int, std::span<double>, SimdLevel,
                              SumsFrom, int);
template void bias_gradient(BatchView<const float>, int, int, std::span<float>, SumsFrom);
template void bias_gradient(BatchView<const double>, int, int, std::span<double>, SumsFrom);
template void fill_columns(MatrixView<const double>, BatchView<float>);
template void fill_columns(MatrixView<const double>, BatchView<double>);
template void fill_columns(MatrixView<const double>, BatchView<Bf16>);

}  // namespace hone
