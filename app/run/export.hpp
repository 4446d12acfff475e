#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/checkpoint.hpp"
#include "app/run/networks.hpp"
#include "app/run/safetensors.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {

enum class ExportFormat { onnx, torch, npz };

// A layer of a network: outputs = inputs · weight + bias.
struct ExportedLayer {
  int inputs = 0, outputs = 0;
  std::vector<float> weight;  // (inputs, outputs), last index fastest
  std::vector<float> bias;    // (outputs); empty: none
};

// A trained model as other programs need it. Its formulas are in docs/checkpoint.md.
struct ExportedModel {
  std::vector<ExportedLayer> mean, sd, decoder;
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
// decoder.2.weight, …
std::vector<NamedArray> torch_arrays(const TrainState& state);

// Whether an array of a training's state is a weight or a bias.
bool is_parameter(const NamedArray& array);

// Writes the model of a run into a folder, which is made if need be; returns the files.
std::vector<std::filesystem::path> export_run(const RunToUse& run, ExportFormat format,
                                              const std::filesystem::path& folder);

}  // namespace hone
