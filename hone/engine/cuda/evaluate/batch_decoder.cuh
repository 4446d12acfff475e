#pragma once

#include "hone/engine/cuda/product/network_products.cuh"
#include "hone/engine/cuda/train/device_layout.hpp"

namespace hone::cuda {

// A decoder whose parameters do not change.
struct FixedDecoder {
  const Net& net;
  const float* parameters;
  Density density;
  Math math;
};

// Rows that a decoder evaluates at once, and what is wanted of them. Row m belongs to datum m / rows_per_datum. Arrays
// of z and x have rows of `padded_width`.
struct DecoderRows {
  int rows, rows_per_datum;
  const float *z, *x;
  float* partial;   // sums of log p(x | z), (parts, rows); null: not wanted
  float* gradient;  // ∇ log p(x | z); null: not wanted
};

// log p(x | z) of up to `most` rows at once and, if wanted, its gradients: one kernel per product.
class BatchDecoder {
 public:
  BatchDecoder(const FixedDecoder& decoder, int most, bool gradients, cudaStream_t stream)
      : decoder_(decoder),
        stream_(stream),
        path_(decoder.math, suits_halves(decoder.net, decoder.density, decoder.math)) {
    path_.allocate_room(decoder.net,
                        {.rows = static_cast<std::size_t>(most), .compares = true, .gradients = gradients});
    with_products({}, [](const auto& products) { products.prepare(); });
  }

  int parts() const { return Comparison::parts(decoder_.net.outputs()); }  // of DecoderRows::partial

  void run(const DecoderRows& rows) const {
    const Comparison data{.density = decoder_.density,
                          .x = rows.x,
                          .ldx = padded_width(decoder_.net.outputs()),
                          .rows_per_datum = rows.rows_per_datum,
                          .alive = nullptr,
                          .partial = rows.partial,
                          .residuals = rows.gradient != nullptr};
    const int ld = padded_width(decoder_.net.inputs());
    with_products({rows.z, ld, {}, {}}, [&](const auto& products) {
      if (rows.gradient)
        products.compute_gradient(rows.rows, data, rows.gradient, ld);
      else
        products.compare(rows.rows, data);
    });
  }

 private:
  template <class F>
  void with_products(const Tape& tape, F f) const {
    path_.with(decoder_.net, decoder_.parameters, tape, {}, stream_, f);
  }

  FixedDecoder decoder_;
  cudaStream_t stream_;
  ProductPath path_;
};

}  // namespace hone::cuda
