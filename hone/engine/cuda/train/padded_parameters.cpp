#include "hone/engine/cuda/train/padded_parameters.hpp"

#include <algorithm>

namespace hone::cuda {

int padded_width(int units) { return (units + 3) / 4 * 4; }

PaddedParameters::PaddedParameters(std::span<const Tensor> tensors) : tensors_(tensors.begin(), tensors.end()) {
  for (const Tensor& tensor : tensors_) {
    offsets_.push_back(size_);
    size_ += static_cast<std::size_t>(tensor.rows) * static_cast<std::size_t>(padded_width(tensor.cols));
  }
}

std::size_t PaddedParameters::offset(const std::string& name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].name == name) return offsets_[i];
  return npos;
}

std::vector<float> PaddedParameters::padded(std::span<const float> values) const {
  std::vector<float> out(size_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    for (int row = 0; row < tensor.rows; ++row)
      std::copy_n(
          values.begin() + static_cast<std::ptrdiff_t>(tensor.offset) + static_cast<std::ptrdiff_t>(row) * tensor.cols,
          tensor.cols,
          out.begin() + static_cast<std::ptrdiff_t>(offsets_[i]) +
              static_cast<std::ptrdiff_t>(row) * padded_width(tensor.cols));
  }
  return out;
}

void PaddedParameters::unpad(std::span<const float> padded, std::span<float> values) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    for (int row = 0; row < tensor.rows; ++row)
      std::copy_n(
          padded.begin() + static_cast<std::ptrdiff_t>(offsets_[i]) +
              static_cast<std::ptrdiff_t>(row) * padded_width(tensor.cols),
          tensor.cols,
          values.begin() + static_cast<std::ptrdiff_t>(tensor.offset) + static_cast<std::ptrdiff_t>(row) * tensor.cols);
  }
}

}  // namespace hone::cuda
