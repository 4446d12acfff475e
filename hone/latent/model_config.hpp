#pragma once

#include <vector>

#include "hone/tensor/layer_kinds.hpp"

namespace hone {

/// The latent-variable models that the library has.
enum class ModelKind { vae, logistic_mf, gaussian_mf, poisson_mf };

/// How networks start.
enum class InitialWeights {
  scaled,  ///< hidden units begin at the order of one and outputs at a tenth, whatever the widths and the data's scale
  paper,   ///< the authors': hidden layers N(0, 1)/√units, output layers N(0, 1), matrix factorization 0.01 N(0, 1)
};

/// A latent-variable model and its amortized q. The defaults are the paper's VAE with scaled initial weights.
struct ModelConfig {
  ModelKind kind = ModelKind::vae;                  ///< which model
  int latent = 10;                                  ///< D
  std::vector<int> hidden = {200, 200};             ///< of the decoder; empty for matrix factorization
  std::vector<int> encoder_hidden = {200, 200};     ///< of both networks of q
  Activation activation = Activation::relu;         ///< of all hidden layers
  InitialWeights initial = InitialWeights::scaled;  ///< initial weights and biases

  /// p(x | z) of the model.
  Density density() const;
};

/// Throws KeyError if the kind and the hidden layers contradict each other.
void check(const ModelConfig& config);

}  // namespace hone
