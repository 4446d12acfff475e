#pragma once

#include <cmath>
#include <cstdint>

namespace hone {

// An estimate and its standard error.
struct Estimate {
  double mean = 0;
  double se = 0;
};

// What Moments are made of, to be stored and taken up again.
struct RawMoments {
  std::uint64_t count = 0;
  double mean = 0;
  double squares = 0;  // Σ (x − mean)²
};

// Running mean and variance (Welford): one pass, no cancellation.
class Moments {
 public:
  Moments() = default;
  explicit Moments(const RawMoments& raw) : count_(raw.count), mean_(raw.mean), squares_(raw.squares) {}
  RawMoments raw() const { return {count_, mean_, squares_}; }

  void add(double x) {
    ++count_;
    const double shift = x - mean_;
    mean_ += shift / static_cast<double>(count_);
    squares_ += shift * (x - mean_);
  }
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double variance() const { return count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : 0; }
  double sd() const { return std::sqrt(variance()); }
  // The standard error of the mean is unknown from fewer than two values: NaN.
  Estimate estimate() const {
    const double se = count_ > 1 ? std::sqrt(variance() / static_cast<double>(count_)) : std::nan("");
    return {mean_, se};
  }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

}  // namespace hone
