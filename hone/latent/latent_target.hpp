#pragma once

#include <vector>

#include "hone/latent/decoder.hpp"
#include "hone/target/target.hpp"

namespace hone {

// log p(x, z) of the data of a minibatch: one posterior a datum, all with the same decoder.
template <class Real>
class LatentTarget final : public Target {
 public:
  // The decoder must outlive the target and be packed. With Gradients::bf16 all gradients are made of bf16 products,
  // those that come with an (exact) value too: all kicks of a trajectory are by one function, so that it is reversible.
  explicit LatentTarget(const Decoder<Real>& decoder, Gradients gradients = Gradients::exact)
      : decoder_(decoder), gradients_(gradients) {}

  // Column c of the minibatch, which must outlive its use, is datum first_datum + c. Not while others evaluate.
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
