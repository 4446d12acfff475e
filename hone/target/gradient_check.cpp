// Declared in density.hpp.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>

#include "hone/base/format.hpp"
#include "hone/target/density.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {
namespace {

constexpr int most_coordinates = 20, coordinates_per_call = 7;  // 14 values: few programs for those who compile
constexpr double gross = 0.4, smooth = 0.25, stable = 0.2;      // as shares of the larger of two slopes
constexpr double float_rounding = 1.2e-7;
constexpr std::chrono::duration<double> processor_time{0.05}, time_in_all{0.5};  // after the first values

struct Slopes {
  double left = 0, right = 0, noise = 0;
  double central() const { return 0.5 * (left + right); }
};

double step_at(double z) { return 1e-3 * std::max(1.0, std::abs(z)); }

bool close(double a, double b, double share) { return std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b)); }

// Values at one point, and the slopes to both sides of it.
class Differences {
 public:
  Differences(const Target& target, std::span<const double> z)
      : target_(target), z_(z.begin(), z.end()), gradient_(static_cast<int>(z.size()), 1) {
    Matrix<double> point(static_cast<int>(z.size()), 1);
    std::ranges::copy(z, point.column(0).begin());
    target.evaluate(point, Want::both, {&value_, 1}, gradient_);
  }

  bool usable() const { return std::isfinite(value_); }
  double given(int coordinate) const { return gradient_(coordinate, 0); }

  // Of these coordinates, with steps of `share` of the usual one; nothing where a value is not finite or the density
  // does not look smooth.
  std::vector<std::optional<Slopes>> slopes(std::span<const int> coordinates, double share) const {
    const int count = static_cast<int>(coordinates.size()), d = static_cast<int>(z_.size());
    Matrix<double> points(d, 2 * count), unwanted(d, 2 * count);
    for (int k = 0; k < 2 * count; ++k) {
      std::ranges::copy(z_, points.column(k).begin());
      const int i = coordinates[static_cast<std::size_t>(k / 2)];
      points(i, k) += (k % 2 == 0 ? -1 : 1) * share * step_at(z_[static_cast<std::size_t>(i)]);
    }
    std::vector<double> value(static_cast<std::size_t>(2 * count));
    target_.evaluate(points, Want::value, value, unwanted);
    std::vector<std::optional<Slopes>> found;
    for (int k = 0; k < count; ++k) {
      const double step = share * step_at(z_[static_cast<std::size_t>(coordinates[static_cast<std::size_t>(k)])]);
      found.push_back(
          slopes_of(value[static_cast<std::size_t>(2 * k)], value[static_cast<std::size_t>(2 * k + 1)], step));
    }
    return found;
  }

  // Whether the gradient is wrong in this coordinate, by steps that agree: the density has no ripples finer than them.
  bool wrong(int coordinate, const Slopes& first) const {
    if (!differs(coordinate, first)) return false;
    const auto agrees = [&](const std::optional<Slopes>& again) {
      return again && close(first.central(), again->central(), stable);
    };
    const std::optional<Slopes> again = slopes({&coordinate, 1}, 1. / 8).front();
    if (!agrees(again) || !differs(coordinate, *again)) return false;
    const bool single = static_cast<double>(static_cast<float>(value_)) == value_;  // too few digits for smaller steps
    return single || agrees(slopes({&coordinate, 1}, 1. / 512).front());
  }

 private:
  std::optional<Slopes> slopes_of(double before, double after, double step) const {
    if (!std::isfinite(before) || !std::isfinite(after) || before == value_ || after == value_) return {};
    const Slopes found{(value_ - before) / step, (after - value_) / step,
                       float_rounding * std::max({std::abs(before), std::abs(after), std::abs(value_)}) / step};
    if (!close(found.left, found.right, smooth)) return {};
    return found;
  }

  bool differs(int coordinate, const Slopes& slopes) const {
    const double off = std::abs(given(coordinate) - slopes.central());
    return off > gross * std::max(std::abs(given(coordinate)), std::abs(slopes.central())) + 4 * slopes.noise;
  }

  const Target& target_;
  std::vector<double> z_;
  double value_ = 0;
  Matrix<double> gradient_;
};

// How long it took. A busy machine takes no part of the processor time.
class Meter {
 public:
  bool over() const {
    return processor() - began_processor_ > processor_time || std::chrono::steady_clock::now() - began_ > time_in_all;
  }

 private:
  static std::chrono::duration<double> processor() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::duration<double>(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
  }

  std::chrono::duration<double> began_processor_ = processor();
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// At most 20, evenly spaced.
std::vector<int> looked_at(int d) {
  const int count = std::min(d, most_coordinates);
  std::vector<int> coordinates;
  for (int k = 0; k < count; ++k) coordinates.push_back(static_cast<int>(static_cast<std::int64_t>(k) * d / count));
  return coordinates;
}

// A point nearby whose coordinates have nothing in common.
std::vector<double> moved(std::span<const double> z) {
  std::vector<double> point(z.begin(), z.end());
  for (std::size_t i = 0; i < point.size(); ++i)
    point[i] += (0.1 + 0.07 * static_cast<double>(i % 5)) * std::max(1.0, std::abs(point[i])) * (i % 2 == 0 ? 1 : -1);
  return point;
}

}  // namespace

std::optional<WrongGradient> wrong_gradient(const Target& target, std::span<const double> z) {
  const Differences here(target, z);
  if (!here.usable()) return {};
  std::optional<WrongGradient> worst;
  std::optional<Differences> nearby;
  const std::vector<int> coordinates = looked_at(static_cast<int>(z.size()));
  std::optional<Meter> meter;  // after the first values, for which a density may have to be compiled
  for (std::size_t at = 0; at < coordinates.size(); at += coordinates_per_call) {
    const std::size_t count = std::min<std::size_t>(coordinates_per_call, coordinates.size() - at);
    const std::span<const int> some = std::span(coordinates).subspan(at, count);
    const auto slopes = here.slopes(some, 1);
    for (std::size_t k = 0; k < count; ++k) {
      if (!slopes[k] || !here.wrong(some[k], *slopes[k])) continue;
      if (!nearby) nearby.emplace(target, moved(z));
      if (!nearby->usable()) return {};
      const std::optional<Slopes> there = nearby->slopes(some.subspan(k, 1), 1).front();
      if (!there || !nearby->wrong(some[k], *there)) continue;
      const WrongGradient found{some[k], here.given(some[k]), slopes[k]->central()};
      if (!worst || std::abs(found.given - found.difference) > std::abs(worst->given - worst->difference))
        worst = found;
    }
    if (!meter) meter.emplace();
    if (meter->over()) break;
  }
  return worst;
}

std::string gradient_complaint(const Target& target, std::span<const double> z, const std::vector<std::string>& names) {
  const std::optional<WrongGradient> found = wrong_gradient(target, z);
  if (!found) return {};
  return detail::format(
      "the gradient is not that of the value: at the start, in coordinate {}, the gradient is {:.4g}, "
      "and differences of the value say {:.4g}",
      names.at(static_cast<std::size_t>(found->coordinate)), found->given, found->difference);
}

}  // namespace hone
