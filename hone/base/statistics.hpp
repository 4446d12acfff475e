#pragma once

#include <cmath>
#include <cstdint>
#include <span>

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

// Pearson's correlation of paired values; NaN where one of them does not vary.
inline double correlation(std::span<const double> x, std::span<const double> y) {
  Moments of_x, of_y;
  for (const double value : x) of_x.add(value);
  for (const double value : y) of_y.add(value);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - of_x.mean()) * (y[i] - of_y.mean());
  return sum / (static_cast<double>(x.size() - 1) * of_x.sd() * of_y.sd());
}

}  // namespace hone
