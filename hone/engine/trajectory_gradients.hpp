#pragma once

#include "hone/engine/config.hpp"
#include "hone/latent/decoder.hpp"

namespace hone {

// How trajectories of this precision compute ∇_z log p(x, z).
inline Gradients trajectory_gradients(Precision precision) {
  return precision == Precision::bf16_trajectory ? Gradients::bf16 : Gradients::exact;
}

}  // namespace hone
