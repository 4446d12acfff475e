#pragma once

#include <type_traits>

#include "hone/base/scalar.hpp"
#include "hone/engine/cuda/device/mma.cuh"
#include "hone/tensor/layer.hpp"

namespace hone::cuda {

// Scalar functions of the layers. With tf32 products the fast exponential is as good as the rest.
template <Math math>
__device__ __forceinline__ float exponential(float a) {
  if constexpr (math == Math::fp32) return expf(a);
  float result;  // 0 below 2⁻¹²⁶, ∞ from 2¹²⁸
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a * 1.44269504f));
  return result;
}
template <Math math>
__device__ __forceinline__ float logistic(float a) {
  if constexpr (math == Math::fp32) return 1.0f / (1.0f + expf(-a));
  return __fdividef(1.0f, 1.0f + exponential<math>(-a));
}
template <Math math>
__device__ __forceinline__ float soft_plus(float a) {
  const float tail = exponential<math>(-fabsf(a));
  return fmaxf(a, 0.0f) + (math == Math::tf32 ? __logf(1.0f + tail) : log1pf(tail));
}

inline constexpr auto float_shift = static_cast<float>(softplus_shift);  // of modified_softplus, see hone/base

template <Math math>
__device__ __forceinline__ float activate(Activation activation, float a) {
  switch (activation) {
    case Activation::relu:
      return fmaxf(a, 0.0f);
    case Activation::tanh:
      return tanhf(a);
    case Activation::softplus:
      return soft_plus<math>(a);
    default:
      return a;
  }
}

// act'(·) where h = act(·)
template <Math math>
__device__ __forceinline__ float derivative(Activation activation, float h) {
  switch (activation) {
    case Activation::relu:
      return h > 0.0f ? 1.0f : 0.0f;
    case Activation::tanh:
      return 1.0f - h * h;
    case Activation::softplus:
      return 1.0f - exponential<math>(-h);
    default:
      return 1.0f;
  }
}

// Calls f with a choice that the compiler knows, so that it is made once before a loop and not for each number. The
// choice is one of those named; with `only_first` it is the first.
template <bool only_first, auto first, auto... others, class F>
__device__ __forceinline__ auto with_choice(decltype(first) choice, F f) {
  if constexpr (only_first || sizeof...(others) == 0)
    return f(std::integral_constant<decltype(first), first>());
  else
    return choice == first ? f(std::integral_constant<decltype(first), first>())
                           : with_choice<false, others...>(choice, f);
}

// d log p(x | a) / da, and log p(x | a) up to terms constant in a, of which only a Gaussian's normalizer is kept
template <Math math>
__device__ __forceinline__ float residual(Density density, float a, float x) {
  switch (density) {
    case Density::bernoulli:
      return x - logistic<math>(a);
    case Density::gaussian:
      return (x - a) * static_cast<float>(1 / gaussian_variance);
    default:
      return (x / (float_shift + soft_plus<math>(a - float_shift)) - 1.0f) * logistic<math>(a - float_shift);
  }
}
template <Math math>
__device__ __forceinline__ float log_probability(Density density, float a, float x) {
  switch (density) {
    case Density::bernoulli:
      return x * a - soft_plus<math>(a);
    case Density::gaussian:
      return (x - a) * (x - a) * static_cast<float>(-0.5 / gaussian_variance) +
             static_cast<float>(gaussian_log_normalizer);
    default: {
      const float rate = float_shift + soft_plus<math>(a - float_shift);
      return x * (math == Math::tf32 ? __logf(rate) : logf(rate)) - rate;
    }
  }
}
inline constexpr float never = -1e30f;  // bias of pixels that do not exist: of a Bernoulli, log p(0) = 0

}  // namespace hone::cuda
