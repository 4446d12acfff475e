#pragma once

#include <vector>

#include "hone/tensor/layer_kinds.hpp"

namespace hone {

/// The latent-variable models that the library has.
enum class ModelKind { vae, logistic_mf, gaussian_mf, poisson_mf };

/// A latent-variable model and its amortized q. The defaults are the paper's for the VAE.
struct ModelConfig {
  ModelKind kind = ModelKind::vae;               ///< which model
  int latent = 10;                               ///< D
  std::vector<int> hidden = {200, 200};          ///< of the decoder; empty for matrix factorization
  std::vector<int> encoder_hidden = {200, 200};  ///< of both networks of q
  Activation activation = Activation::relu;      ///< of all hidden layers

  /// p(x | z) of the model.
  Density density() const;
};

/// Throws KeyError if the kind and the hidden layers contradict each other.
void check(const ModelConfig& config);

}  // namespace hone
