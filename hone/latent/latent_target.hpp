#pragma once

#include <vector>

#include "hone/latent/decoder.hpp"
#include "hone/target/target.hpp"

namespace hone {

// log p(x, z) for a minibatch: one posterior per datum, all with the same decoder.
template <class Real>
class LatentTarget final : public Target {
 public:
  // The decoder must be packed and outlive the target. With Gradients::bf16 all gradients come from bf16 products, even
  // those requested with an (exact) value: a trajectory is reversible only if one function makes all its kicks.
  explicit LatentTarget(const Decoder<Real>& decoder, Gradients gradients = Gradients::exact)
      : decoder_(decoder), gradients_(gradients) {}

  // Column c of the minibatch is datum first_datum + c. The minibatch must outlive its use. Not thread-safe.
  void set_data(const Minibatch<Real>& data, std::uint32_t first_datum = 0);

  int dimension() const override { return decoder_.latent(); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;
  void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                    std::span<const std::uint32_t> datum) const override;

 private:
  const Decoder<Real>& decoder_;
  Gradients gradients_;
  const Minibatch<Real>* data_ = nullptr;
  std::uint32_t first_datum_ = 0;
};

}  // namespace hone
