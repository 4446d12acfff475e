#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/latent/parameters.hpp"

namespace hone::cuda {

int padded_width(int units);  // of a row, in floats: copies are of 16 bytes

// The parameters as the device holds them: rows padded to multiples of four floats.
class PaddedParameters {
 public:
  explicit PaddedParameters(std::span<const Tensor> tensors);
  std::size_t size() const { return size_; }
  std::size_t offset(const std::string& name) const;  // npos where there is no such tensor
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::vector<float> padded(std::span<const float> values) const;
  void unpad(std::span<const float> padded, std::span<float> values) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
};

}  // namespace hone::cuda
