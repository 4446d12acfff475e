#include "hone/engine/cuda/train/device_layout.hpp"

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

// f(where a row of a tensor begins in the model's layout, where in the device's, its length)
template <class F>
void PaddedParameters::each_row(F f) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto cols = static_cast<std::size_t>(tensors_[i].cols);
    std::size_t from = tensors_[i].offset, to = offsets_[i];
    for (int row = 0; row < tensors_[i].rows; ++row) {
      f(from, to, cols);
      from += cols;
      to += static_cast<std::size_t>(padded_width(tensors_[i].cols));
    }
  }
}

std::vector<float> PaddedParameters::padded(std::span<const float> values) const {
  std::vector<float> out(size_);
  each_row([&](std::size_t from, std::size_t to, std::size_t cols) { std::copy_n(&values[from], cols, &out[to]); });
  return out;
}

void PaddedParameters::unpad(std::span<const float> padded, std::span<float> values) const {
  each_row([&](std::size_t to, std::size_t from, std::size_t cols) { std::copy_n(&padded[from], cols, &values[to]); });
}

PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld) {
  PointData points{std::vector<float>(static_cast<std::size_t>(count) * static_cast<std::size_t>(ld)),
                   std::vector<double>(static_cast<std::size_t>(count))};
  Minibatch<float> one = model.minibatch(1);
  for (int i = 0; i < count; ++i) {
    const int n = begin + i;
    model.expand(data, std::span<const int>(&n, 1), 0, 1, one);
    std::copy_n(one.view().column(0), data.dimension(), points.x.begin() + static_cast<std::ptrdiff_t>(i) * ld);
    points.constant[static_cast<std::size_t>(i)] = one.constant(0);
  }
  return points;
}

}  // namespace hone::cuda
