#include "hone/mcmc/mala.hpp"

#include <cmath>

#include "hone/base/scalar.hpp"

namespace hone {

void Mala::step(const Target& target, const Move& move, const ChainsView& chains) {
  const int count = chains.count();
  const int dimension = chains.z.rows();
  if (position_.rows() != dimension || position_.cols() < count) {
    noise_ = position_ = gradient_ = Matrix<double>(dimension, count);
    value_.resize(count);
    datum_.resize(count);
  }
  const double delta = move.step_size;
  for (int chain = 0; chain < count; ++chain) {
    datum_[chain] = chains.datum(chain);
    move.random.normals({Purpose::momentum, move.iteration, datum_[chain], move.step}, noise_.column(chain));
    for (int i = 0; i < dimension; ++i)
      position_(i, chain) =
          chains.z(i, chain) + 0.5 * delta * chains.gradient(i, chain) + std::sqrt(delta) * noise_(i, chain);
  }
  const MatrixView<double> position = position_, gradient = gradient_;
  target.evaluate(position.columns(0, count), Want::both, value_, gradient.columns(0, count), datum_);
  for (int chain = 0; chain < count; ++chain) {
    // log r(z' → z) − log r(z → z'): both are Gaussian with variance δ
    double proposal_ratio = 0;
    for (int i = 0; i < dimension; ++i) {
      const double back = chains.z(i, chain) - position_(i, chain) - 0.5 * delta * gradient_(i, chain);
      proposal_ratio += 0.5 * square(noise_(i, chain)) - 0.5 * square(back) / delta;
    }
    const double log_ratio = value_[chain] - chains.value[chain] + proposal_ratio;
    metropolis({.log_ratio = log_ratio,
                .value = value_[chain],
                .z = position_.column(chain),
                .gradient = gradient_.column(chain)},
               move, chains, chain);
  }
}

}  // namespace hone
