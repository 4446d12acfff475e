#include <algorithm>
#include <numeric>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/random.hpp"
#include "hone/engine/engines.hpp"

namespace hone {
namespace {

class PermutedMinibatches final : public Minibatches {
 public:
  PermutedMinibatches(int data, std::uint64_t seed) : random_(seed), data_(data) {}

  void fill(std::uint32_t iteration, std::span<int> data) override {
    std::uint64_t position = (std::uint64_t{iteration} - 1) * data.size();
    for (int& datum : data) {
      const auto epoch = static_cast<std::uint32_t>(position / static_cast<std::uint64_t>(data_));
      if (order_.empty() || epoch != epoch_) shuffle(epoch);
      datum = order_[position % static_cast<std::uint64_t>(data_)];
      ++position;
    }
  }

 private:
  void shuffle(std::uint32_t epoch) {  // Fisher–Yates
    epoch_ = epoch;
    order_.resize(data_);
    uniform_.resize(data_);
    std::iota(order_.begin(), order_.end(), 0);
    random_.uniforms({Purpose::shuffle, epoch}, uniform_);
    for (int i = data_ - 1; i > 0; --i) std::swap(order_[i], order_[static_cast<int>(uniform_[i] * (i + 1))]);
  }

  PhiloxSource random_;
  int data_;
  std::uint32_t epoch_ = 0;
  std::vector<int> order_;
  std::vector<double> uniform_;
};

}  // namespace

std::unique_ptr<Minibatches> permuted_minibatches(int data, std::uint64_t seed) {
  if (data < 1) throw InputError("there are no data to train on");
  return std::make_unique<PermutedMinibatches>(data, seed);
}

}  // namespace hone
