#pragma once

#include <optional>

#include "hone/engine/cuda/evaluate/warp_decoder.cuh"
#include "hone/engine/cuda/product/network_products.cuh"

namespace hone::cuda {

// log p(x | z) of up to `most` rows at once, and its gradients where those are wanted: in one kernel where tf32's
// precision is asked for and the decoder fits one (WarpDecoder), else one kernel per product. The parameters must not
// change meanwhile.
template <Math math>
class BatchDecoder {
 public:
  BatchDecoder(const Net& net, const float* parameters, Density density, int most, bool gradients, cudaStream_t stream)
      : net_(net),
        parameters_(parameters),
        density_(density),
        stream_(stream),
        path_(math, suits_halves(net, density, math)) {
    if (in_one_kernel(net, density)) {
      warps_.emplace(net, parameters, stream);
      return;
    }
    path_.allocate_room(net, most, 1, true, gradients);
    with_products([](const auto& products) { products.prepare(); });
  }

  static bool in_one_kernel(const Net& net, Density density) {
    return math == Math::tf32 && WarpDecoder::holds(net, density);
  }
  int parts() const { return warps_ ? 1 : Comparison::parts(net_.outputs()); }  // of DecoderRows::partial

  void run(const DecoderRows& rows) {
    if (warps_) return warps_->run(rows);
    tape_.input = rows.input;
    tape_.ld_input = rows.ld;
    const bool gradient = rows.gradient != nullptr;
    const Comparison data{density_, rows.x, rows.ldx, rows.rows_per_datum, nullptr, rows.partial, gradient};
    with_products([&](const auto& products) {
      gradient ? products.compute_gradient(rows.rows, data, rows.gradient, rows.ld) : products.compare(rows.rows, data);
    });
  }

 private:
  template <class F>
  void with_products(F f) const {
    path_.with(net_, parameters_, tape_, {}, stream_, f);
  }

  const Net& net_;
  const float* parameters_;
  Density density_;
  cudaStream_t stream_;
  ProductPath path_;
  std::optional<WarpDecoder> warps_;
  Tape tape_ = {};
};

}  // namespace hone::cuda
