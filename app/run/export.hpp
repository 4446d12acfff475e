#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/run/checkpoint.hpp"
#include "app/run/networks.hpp"
#include "app/run/safetensors.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/tensor/convolution.hpp"

namespace hone {

enum class ExportFormat { onnx, torch, npz };

// A layer of a network: outputs = inputs · weight + bias, or a convolution.
struct ExportedLayer {
  int inputs = 0, outputs = 0;  // numbers
  std::vector<float> weight;    // (inputs, outputs), last index fastest; of a convolution (coarse, fine, 4, 4)
  std::vector<float> bias;      // (outputs), or one per channel; empty: none
  std::optional<Windows> windows = {};
  Way way = Way::down;
};

// A trained model as other programs need it. Its formulas are in docs/checkpoint.md.
struct ExportedModel {
  std::vector<ExportedLayer> mean, sd, decoder;
  std::vector<Windows> convolutions = {};
  Activation activation = Activation::relu;  // of hidden layers
  MeanOf mean_of = MeanOf::sigmoid;          // E[x | z] of the decoder's outputs
  int categories = 0;                        // values per group of a softmax
  std::vector<float> centre;                 // the mean of the training data; empty unless the model subtracts it
  std::vector<std::pair<std::string, std::string>> notes;
};

// From a checkpoint's arrays. Throws InputError if one is missing.
ExportedModel exported(const RunToUse& run);

// The bytes of an ONNX model in float32: x (data, pixels) → mean, sd; and z (data, latent) → outputs, mean.
// Throws InputError if the file would be larger than ONNX allows.
std::string onnx_encoder(const ExportedModel& model);
std::string onnx_decoder(const ExportedModel& model);

// Weights and biases under the names that PyTorch gives them: decoder.0.weight (outputs, inputs), decoder.0.bias,
// decoder.2.weight, …; the weights of convolutions as Conv2d and ConvTranspose2d have them, (coarse, fine, 4, 4).
std::vector<NamedArray> torch_arrays(const TrainState& state, const std::vector<Windows>& convolutions);

// Whether an array of a training's state is a weight or a bias.
bool is_parameter(const NamedArray& array);

// Writes the model of a run into a folder, which is made if need be; returns the files.
std::vector<std::filesystem::path> export_run(const RunToUse& run, ExportFormat format,
                                              const std::filesystem::path& folder);

}  // namespace hone
