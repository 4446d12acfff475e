#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace hone {

/// An estimate and its standard error.
struct Estimate {
  double mean = 0;  ///< the estimate
  double se = 0;    ///< its standard error
};

/// The state of Moments, to be stored and restored.
struct RawMoments {
  std::uint64_t count = 0;  ///< values seen
  double mean = 0;          ///< their mean
  double squares = 0;       ///< Σ (x − mean)²
};

/// Running mean and variance (Welford): one pass, no cancellation.
class Moments {
 public:
  /// No values yet.
  Moments() = default;
  /// Continues from a stored state.
  explicit Moments(const RawMoments& raw) : count_(raw.count), mean_(raw.mean), squares_(raw.squares) {}
  /// The state, to be stored.
  RawMoments raw() const { return {count_, mean_, squares_}; }

  /// Takes in one more value.
  constexpr void add(double x) {
    ++count_;
    const double shift = x - mean_;
    mean_ += shift / static_cast<double>(count_);
    squares_ += shift * (x - mean_);
  }
  /// How many values were added.
  std::uint64_t count() const { return count_; }
  /// The mean of the values; 0 if there are none.
  double mean() const { return mean_; }
  /// The unbiased variance; 0 with fewer than two values.
  double variance() const { return count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : 0; }
  /// The standard deviation.
  double sd() const { return std::sqrt(variance()); }
  /// The mean with its standard error, which is NaN with fewer than two values.
  Estimate estimate() const {
    const double se = count_ > 1 ? std::sqrt(variance() / static_cast<double>(count_)) : std::nan("");
    return {mean_, se};
  }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

/// Pearson's correlation of paired values; NaN if either does not vary.
inline double correlation(std::span<const double> x, std::span<const double> y) {
  Moments of_x, of_y;
  for (const double value : x) of_x.add(value);
  for (const double value : y) of_y.add(value);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - of_x.mean()) * (y[i] - of_y.mean());
  return sum / (static_cast<double>(x.size() - 1) * of_x.sd() * of_y.sd());
}

}  // namespace hone
