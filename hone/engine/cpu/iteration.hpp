#pragma once

#include <span>
#include <variant>

#include "hone/latent/minibatch_family.hpp"
#include "hone/latent/parameters.hpp"
#include "hone/objective/evidence.hpp"

namespace hone {

// One iteration of the cpu engine as an observer sees it: all gradients are known, and the parameters have not moved
// yet. Valid only during the call.
struct IterationView {
  const MinibatchFamily& q;         // of the minibatch
  const Evidence& evidence;         // z0, z_t and what is known there (log q at z0 only if needed)
  std::span<const double> ascent;   // with respect to q's parameters
  std::span<const Tensor> tensors;  // of the parameters
  std::variant<std::span<const float>, std::span<const double>> gradient;  // with respect to all parameters; ascent
};

}  // namespace hone
