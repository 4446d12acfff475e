#pragma once

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "hone/base/random.hpp"

namespace hone::test {

// Replays recorded random numbers. A stream that was not recorded is a test failure.
class ReplaySource final : public RandomSource {
 public:
  void record(const Stream& stream, std::vector<double> numbers) { numbers_[key(stream)] = std::move(numbers); }

  void normals(const Stream& stream, std::span<double> out) const override { replay(stream, out); }
  void uniforms(const Stream& stream, std::span<double> out) const override { replay(stream, out); }

 private:
  using Key = std::tuple<Purpose, std::uint32_t, std::uint32_t, std::uint32_t>;
  static Key key(const Stream& s) { return {s.purpose, s.iteration, s.datum, s.step}; }

  void replay(const Stream& stream, std::span<double> out) const {
    const auto found = numbers_.find(key(stream));
    ASSERT_NE(found, numbers_.end()) << "no number was recorded for iteration " << stream.iteration;
    ASSERT_EQ(found->second.size(), out.size());
    std::copy(found->second.begin(), found->second.end(), out.begin());
  }

  std::map<Key, std::vector<double>> numbers_;
};

}  // namespace hone::test
