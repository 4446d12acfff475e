#pragma once

namespace hone {

/// What a unit of a network applies to its input.
enum class Activation {
  linear,    ///< a
  relu,      ///< max(a, 0)
  tanh,      ///< tanh(a)
  softplus,  ///< log(1 + exp(a))
};

/// p(x | a), where a layer's output a holds the natural parameters.
enum class Density {
  bernoulli,  ///< bits with logits a
  gaussian,   ///< mean a, fixed variance
  poisson,    ///< counts with rate log(1 + exp(a)), kept above a small constant
};

}  // namespace hone
