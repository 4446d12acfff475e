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
__device__ __forceinline__ float slope(Activation activation, float h) {
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

// Calls f with a choice that the compiler knows, so that it is made once before a loop and not for each number. Halves
// serve ReLUs and Bernoullis only (`suits_halves`).
template <bool halves, class F>
__device__ __forceinline__ auto with_activation(Activation activation, F f) {
  using enum Activation;
  if (halves || activation == relu) return f(std::integral_constant<Activation, relu>());
  if (activation == linear) return f(std::integral_constant<Activation, linear>());
  if (activation == tanh) return f(std::integral_constant<Activation, tanh>());
  return f(std::integral_constant<Activation, softplus>());
}
template <bool halves, class F>
__device__ __forceinline__ auto with_density(Density density, F f) {
  using enum Density;
  if (halves || density == bernoulli) return f(std::integral_constant<Density, bernoulli>());
  if (density == gaussian) return f(std::integral_constant<Density, gaussian>());
  return f(std::integral_constant<Density, poisson>());
}

// d log p(x | a) / da, and log p(x | a) without what does not depend on a but for a Gaussian's normalizer
template <Math math>
__device__ __forceinline__ float residual(Density density, float a, float x) {
  constexpr auto shift = static_cast<float>(softplus_shift);
  switch (density) {
    case Density::bernoulli:
      return x - logistic<math>(a);
    case Density::gaussian:
      return (x - a) * static_cast<float>(1 / gaussian_variance);
    default:
      return (x / (shift + soft_plus<math>(a - shift)) - 1.0f) * logistic<math>(a - shift);
  }
}
template <Math math>
__device__ __forceinline__ float log_probability(Density density, float a, float x) {
  constexpr auto shift = static_cast<float>(softplus_shift);
  switch (density) {
    case Density::bernoulli:
      return x * a - soft_plus<math>(a);
    case Density::gaussian:
      return (x - a) * (x - a) * static_cast<float>(-0.5 / gaussian_variance) + 1.3836465597893730f;  // −½ log(2π 0.01)
    default: {
      const float rate = shift + soft_plus<math>(a - shift);
      return x * (math == Math::tf32 ? __logf(rate) : logf(rate)) - rate;
    }
  }
}
inline constexpr float never = -1e30f;  // bias of pixels that do not exist: of a Bernoulli, log p(0) = 0

}  // namespace hone::cuda
