#pragma once

namespace hone {

/// What a unit of a network applies to its input.
enum class Activation {
  linear,    ///< a
  relu,      ///< max(a, 0)
  tanh,      ///< tanh(a)
  softplus,  ///< log(1 + exp(a))
};

/// p(x | a), where a layer's output a holds the natural parameters. The matrix products compute the first three.
enum class Density {
  bernoulli,          ///< bits with logits a
  gaussian,           ///< mean a, fixed variance
  poisson,            ///< counts with rate log(1 + exp(a)), kept above a small constant
  gaussian_learned,   ///< mean and standard deviation
  categorical,        ///< groups of bits of which one is 1, with logits a
  negative_binomial,  ///< counts, with mean and dispersion
};

}  // namespace hone
