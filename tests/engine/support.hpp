#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hone/engine/cpu/cpu_engine.hpp"
#include "hone/engine/cpu/iteration.hpp"

namespace hone::test {

// Gives the same minibatches in the order recorded.
class ReplayedMinibatches final : public Minibatches {
 public:
  explicit ReplayedMinibatches(std::vector<std::vector<int>> batches) : batches_(std::move(batches)) {}
  void fill(std::uint32_t iteration, std::span<int> data) override {
    std::ranges::copy(batches_.at((iteration - 1) % batches_.size()), data.begin());
  }

 private:
  std::vector<std::vector<int>> batches_;
};

inline DataSet binary_data(const std::vector<double>& values, int pixels) {
  return packed_if_binary(DataSet(values, ImageShape{1, pixels}));
}

// An array of a state, in the number format of the engine that made it.
template <class Real>
std::vector<Real>& array_of(TrainState& state, const std::string& name) {
  return std::get<std::vector<Real>>(std::ranges::find(state.arrays, name, &NamedArray::name)->values);
}

// Bit for bit.
inline void expect_same(const TrainState& expected, const TrainState& found) {
  EXPECT_EQ(expected.iteration, found.iteration);
  EXPECT_EQ(expected.step_size, found.step_size);
  ASSERT_EQ(expected.arrays.size(), found.arrays.size());
  for (std::size_t i = 0; i < expected.arrays.size(); ++i)
    EXPECT_EQ(expected.arrays[i].values, found.arrays[i].values) << expected.arrays[i].name;
}

inline bool is_parameter(const NamedArray& array) {
  return array.name.ends_with(']') && !array.name.starts_with("optimizer.");
}

inline std::vector<double> widened(const std::variant<std::span<const float>, std::span<const double>>& numbers) {
  return std::visit([](auto span) { return std::vector<double>(span.begin(), span.end()); }, numbers);
}

}  // namespace hone::test
