#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hone/base/clones.hpp"

namespace hone {

// The factor by which learning rates have decayed in an iteration (counted from 1).
HONE_INLINE double decay_factor(double decay, std::uint32_t every, std::uint32_t iteration) {
  return every == 0 ? 1 : std::pow(decay, (iteration - 1) / every);  // whole intervals that have passed
}

// The updates of one element by the paper's RMSProp and by Adam; both ascend.
//   RMSProp: G ← 0.9 G + 0.1 g² (at the first iteration G = g²); θ ← θ + η g / (1 + √G)
template <class Real>
HONE_INLINE Real rmsprop_step(Real rate, Real gradient, bool first, Real& g) {
  const Real squared = gradient * gradient;
  g = first ? squared : Real(0.9) * g + Real(0.1) * squared;
  return rate * gradient / (1 + std::sqrt(g));
}

// What Adam divides its moments by in an iteration.
struct AdamCorrection {
  HONE_INLINE AdamCorrection(double first_moment, double second_moment) : first(first_moment), second(second_moment) {}
  HONE_INLINE explicit AdamCorrection(std::uint32_t iteration)
      : first(1 - std::pow(0.9, iteration)), second(1 - std::pow(0.999, iteration)) {}
  double first, second;
};
template <class Real>
HONE_INLINE Real adam_step(Real rate, Real gradient, const AdamCorrection& correction, Real& first, Real& second) {
  first = Real(0.9) * first + Real(0.1) * gradient;
  second = Real(0.999) * second + Real(0.001) * gradient * gradient;
  return rate * (first / Real(correction.first)) / (std::sqrt(second / Real(correction.second)) + Real(1e-8));
}

// The same for a range of elements that share a rate. Returns whether all θ are finite afterwards.
struct Elements {  // [begin, end)
  std::size_t begin, end;
};
template <class Real>
struct UpdateArrays {
  std::span<const Real> gradient;
  std::span<Real> first, second, theta;  // RMSProp has no first moments
};
bool rmsprop_update(const Elements& range, float rate, bool first, const UpdateArrays<float>& arrays);
bool rmsprop_update(const Elements& range, double rate, bool first, const UpdateArrays<double>& arrays);
bool adam_update(const Elements& range, float rate, const AdamCorrection& correction,
                 const UpdateArrays<float>& arrays);
bool adam_update(const Elements& range, double rate, const AdamCorrection& correction,
                 const UpdateArrays<double>& arrays);

}  // namespace hone
