#include "hone/mcmc/random_walk.hpp"

#include <cmath>

namespace hone {

void RandomWalk::step(const Target& target, const Move& move, const ChainsView& chains) {
  const int count = chains.count();
  const int dimension = chains.z.rows();
  if (position_.rows() != dimension || position_.cols() < count) {
    position_ = Matrix<double>(dimension, count);
    value_.resize(count);
    datum_.resize(count);
  }
  for (int chain = 0; chain < count; ++chain) {
    datum_[chain] = chains.datum(chain);
    move.random.normals({Purpose::momentum, move.iteration, datum_[chain], move.step}, position_.column(chain));
    for (int i = 0; i < dimension; ++i)
      position_(i, chain) = chains.z(i, chain) + std::sqrt(move.step_size) * position_(i, chain);
  }
  const MatrixView<double> position = position_;
  target.evaluate(position.columns(0, count), Want::value, value_, {}, datum_);
  for (int chain = 0; chain < count; ++chain)
    metropolis({value_[chain] - chains.value[chain], value_[chain], position_.column(chain), {}}, move, chains, chain);
}

}  // namespace hone
