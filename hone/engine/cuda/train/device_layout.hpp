#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/latent/model.hpp"

// Parameters and data as the device holds them.
namespace hone::cuda {

int padded_width(int units);  // of a row, in floats: copies are of 16 bytes

// Parameters whose rows are padded to multiples of four floats.
class PaddedParameters {
 public:
  explicit PaddedParameters(std::span<const Tensor> tensors);
  std::size_t size() const { return size_; }
  std::size_t offset(const std::string& name) const;  // npos if there is no such tensor
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::vector<float> padded(std::span<const float> values) const;
  void unpad(std::span<const float> padded, std::span<float> values) const;

 private:
  template <class F>
  void each_row(F f) const;

  std::vector<Tensor> tensors_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
};

struct PointData {
  std::vector<float> x;          // (points, ld)
  std::vector<double> constant;  // of log p(x | z), one per point
};

// data[begin, begin + count), with rows of `ld` floats.
PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld);

}  // namespace hone::cuda
