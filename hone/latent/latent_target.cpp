#include "hone/latent/latent_target.hpp"

#include <numeric>
#include <stdexcept>

#include "hone/base/error.hpp"

namespace hone {

template <class Real>
void LatentTarget<Real>::set_data(const Minibatch<Real>& data, std::uint32_t first_datum) {
  if (data.pixels() != decoder_.pixels())
    throw InputError("a datum has " + std::to_string(data.pixels()) + " pixels and the decoder " +
                     std::to_string(decoder_.pixels()));
  data_ = &data;
  first_datum_ = first_datum;
}

template <class Real>
void LatentTarget<Real>::compute(MatrixView<const double> z, Want want, std::span<double> value,
                                 MatrixView<double> gradient) const {
  compute_data(z, want, value, gradient, {});
}

template <class Real>
void LatentTarget<Real>::compute_data(MatrixView<const double> z, Want want, std::span<double> value,
                                      MatrixView<double> gradient, std::span<const std::uint32_t> datum) const {
  if (!data_) throw std::logic_error("a latent target was asked before it had data");
  thread_local std::vector<std::uint32_t> column;  // of the minibatch
  column.resize(z.cols());
  for (int c = 0; c < z.cols(); ++c) {
    column[c] = datum.empty() ? static_cast<std::uint32_t>(c) : datum[c] - first_datum_;
    if (column[c] >= static_cast<std::uint32_t>(data_->count()))
      throw std::logic_error("a latent target was asked for a datum that is not in its minibatch");
  }
  decoder_.log_joint({z, *data_, column}, want, value, gradient, gradients_);
}

template class LatentTarget<float>;
template class LatentTarget<double>;

}  // namespace hone
