#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/tensor/batch.hpp"
#include "hone/tensor/layer_kinds.hpp"
#include "hone/tensor/matrix.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {

// Which products a layer must be able to compute.
enum class Directions { forward, both };

// The data that the last layer is compared with: column c of a batch belongs to column datum[c] of `data`. `observed`
// is laid out as `data`: 1, or 0 where a value is missing and has no part in the likelihood; null if none is.
template <class Real>
struct DataColumns {
  BatchView<const Real> data;
  std::span<const std::uint32_t> datum;
  const Real* observed = nullptr;
};

// A fully connected layer with its weights packed for the kernels of one instruction level. Element is float, double,
// or Bf16 (weights and activations of 16 bits, sums in float). Weights are (in, out), one row per input unit; a batch
// has one chain per column. Several threads may call const functions at once, each on its own columns.
template <class Element>
class PackedLayer {
 public:
  using Real = Sum<Element>;

  PackedLayer(int inputs, int outputs, Directions directions, SimdLevel level = simd_level());

  int inputs() const { return inputs_; }
  int outputs() const { return outputs_; }

  // Call it whenever the weights have changed. An empty bias is zero. Threads share the work as part i of n.
  void pack(std::span<const Real> weights, std::span<const Real> bias, int part = 0, int parts = 1);

  // y = act(Wᵀ x + b)
  void forward(BatchView<const Element> x, Activation activation, BatchView<Element> y) const;

  // residual = d log p(data | a) / da for a = Wᵀ x + b, and value[c] += Σ log p(data | a). An empty output is not
  // computed. A Poisson's value omits − log x!.
  void forward_residual(BatchView<const Element> x, Density density, const DataColumns<Real>& data,
                        BatchView<Element> residual, std::span<double> value) const;

  // dx = (W dy) ⊙ act'(·), where x = act(·) is the value of the activation below
  void backward(BatchView<const Element> dy, Activation below, BatchView<const Element> x, BatchView<Element> dx) const;

  // dx = W dy, for the first layer
  void backward_input(BatchView<const Element> dy, BatchView<Real> dx) const;

 private:
  Product<Element> forward_product(BatchView<const Element> x, BatchView<Element> y, Finish finish) const;
  Product<Element> backward_product(BatchView<const Element> dy, BatchView<Element> dx, Finish finish) const;

  const Kernels<Element>& kernels_;
  int inputs_;
  int outputs_;
  Batch<Element> forward_weights_, backward_weights_;  // one column each
  Batch<Real> bias_, no_bias_;
};

// Where the sums of a gradient begin: at zero, or at the values that the gradient holds from earlier columns.
enum class SumsFrom { zero, before };

// Columns of dy that the nearest cache holds beside the rest, where that pays (near_weight_bytes); otherwise any
// number.
int gradient_columns();

// weights (in, out) = Σ_c x_c dy_cᵀ for the rows of the input units [begin, end). Sums run over the columns in order,
// so a row's bits depend neither on how threads share the rows nor on how calls share the columns, nor on how many are
// taken at once.
template <class Real>
void weight_gradient(BatchView<const Real> x, BatchView<const Real> dy, int begin, int end, std::span<Real> weights,
                     SimdLevel level = simd_level(), SumsFrom from = SumsFrom::zero, int at_once = gradient_columns());

// bias (out) = Σ_c dy_c for the units [begin, end)
template <class Real>
void bias_gradient(BatchView<const Real> dy, int begin, int end, std::span<Real> bias, SumsFrom from = SumsFrom::zero);

// Rounds columns of doubles into a batch; its padding becomes zero.
template <class Element>
void fill_columns(MatrixView<const double> from, BatchView<Element> to);

}  // namespace hone
