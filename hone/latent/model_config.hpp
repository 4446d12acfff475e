#pragma once

#include <vector>

#include "hone/tensor/layer_kinds.hpp"

namespace hone {

/// The latent-variable models that the library has: a network or a linear map of z (matrix factorization), with any
/// likelihood. The last three are matrix factorizations by the names that they had before likelihoods had their own.
enum class ModelKind { vae, mf, logistic_mf, gaussian_mf, poisson_mf };

/// How networks start.
enum class InitialWeights {
  scaled,  ///< hidden units begin near 1 and outputs near 0.1, whatever the widths and the scale of the data
  paper,   ///< the authors': hidden layers N(0, 1)/√units, output layers N(0, 1), matrix factorization 0.01 N(0, 1)
};

/// What a NaN in the data is.
enum class Missing {
  refused,  ///< an error
  ignored,  ///< a missing value: left out of the likelihood; q sees a zero (for a Gaussian likelihood, the mean)
};

/// A latent-variable model and its amortized q. The defaults are the paper's VAE with scaled initial weights.
struct ModelConfig {
  ModelKind kind = ModelKind::vae;                  ///< which model
  int latent = 10;                                  ///< D
  std::vector<int> hidden = {200, 200};             ///< of the decoder; empty for matrix factorization
  std::vector<int> encoder_hidden = {200, 200};     ///< of both networks of q
  Activation activation = Activation::relu;         ///< of all hidden layers
  InitialWeights initial = InitialWeights::scaled;  ///< initial weights and biases
  Missing missing = Missing::refused;               ///< whether values may be missing

  Density likelihood = Density::bernoulli;  ///< of vae and mf; the other kinds say it themselves
  int categories = 0;                       ///< of a categorical likelihood: values per group; else 0
  std::vector<int> channels = {};           ///< of convolutions, each of which halves the image; empty: none

  /// p(x | z) of the model.
  Density density() const;
  /// Whether log p(x) has a closed form.
  bool exact_evidence() const { return kind != ModelKind::vae && density() == Density::gaussian; }
};

/// Throws KeyError if the kind, the likelihood and the hidden layers contradict each other.
void check(const ModelConfig& config);

}  // namespace hone
