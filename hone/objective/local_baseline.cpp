#include "hone/objective/local_baseline.hpp"

#include <algorithm>

namespace hone {

LocalBaseline::LocalBaseline(int data, double decay, std::uint32_t shared_until)
    : decay_(decay), shared_until_(shared_until), values_(data) {}

void LocalBaseline::select(std::span<const int> data, std::uint32_t iteration) {
  data_ = data;
  shared_ = iteration <= shared_until_;
}

void LocalBaseline::centre(const Draws& draws, std::span<const double> value, std::span<double> centred) {
  for (std::size_t i = 0; i < value.size(); ++i) centred[i] = value[i] - values_[data_[i]];
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (draws.weight[i] == 0) continue;  // it left the estimate
    sum += value[i];
    weight += 1;
    if (!shared_) values_[data_[i]] = decay_ * values_[data_[i]] + (1 - decay_) * value[i];
  }
  if (shared_ && weight > 0)  // all are equal
    std::ranges::fill(values_, decay_ * values_.front() + (1 - decay_) * sum / weight);
}

}  // namespace hone
