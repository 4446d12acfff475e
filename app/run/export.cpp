#include "app/run/export.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "app/run/provenance.hpp"
#include "app/run/rows.hpp"
#include "app/run/run_folder.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/scalar.hpp"
#include "hone/latent/model.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// Reads model.safetensors; formulas as in docs/checkpoint.md.
constexpr const char* torch_loader = R"---("""A model that hone trained, for PyTorch. Needs torch and safetensors.

    from hone_model import load
    model = load()                 # from the folder of this file
    mean, sd = model.encode(x)     # of q(z | x); x is (data, pixels)
    x = model.decode(z)            # E[x | z]; model.decoder(z) are the natural parameters (logits)
"""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import nn
from torch.nn.functional import softplus

SHIFT = {shift}  # standard deviations and rates stay above it


class Down(nn.Conv2d):
    """From images (data, values) of twice as many rows and columns, the channels of a pixel side by side."""

    def __init__(self, rows, cols, fine, coarse, bias, dtype):
        super().__init__(fine, coarse, 4, stride=2, padding=1, bias=bias, dtype=dtype)
        self.image = (2 * rows, 2 * cols, fine)

    def forward(self, x):
        return super().forward(x.unflatten(-1, self.image).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).flatten(1)


class Up(nn.ConvTranspose2d):
    """The other way."""

    def __init__(self, rows, cols, fine, coarse, bias, dtype):
        super().__init__(coarse, fine, 4, stride=2, padding=1, bias=bias, dtype=dtype)
        self.image = (rows, cols, coarse)

    def forward(self, x):
        return super().forward(x.unflatten(-1, self.image).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).flatten(1)


def network(state, name, activation, convolutions):
    layers = []
    keys = sorted((key for key in state if key.startswith(name + ".") and key.endswith(".weight")),
                  key=lambda key: int(key.split(".")[1]))
    for key in keys:
        weight = state[key]
        layers += [activation()] if layers else []
        facts = dict(bias=key.replace("weight", "bias") in state, dtype=weight.dtype)
        if weight.dim() == 2:
            layers.append(nn.Linear(weight.shape[1], weight.shape[0], **facts))
        else:
            layers.append((Up if name == "decoder" else Down)(*convolutions.pop(-1 if name == "decoder" else 0), **facts))
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, state, notes):
        super().__init__()
        activation = {"relu": nn.ReLU, "tanh": nn.Tanh, "softplus": nn.Softplus}[notes["activation"]]
        self.kind, self.categories = notes["mean"], int(notes["categories"])
        convolutions = [tuple(int(n) for n in text.split(",")) for text in notes["convolutions"].split(";") if text]
        self.mean, self.sd, self.decoder = (network(state, name, activation, list(convolutions))
                                            for name in ("mean", "sd", "decoder"))
        self.values = int(notes["values"])
        self.register_buffer("centre", state.get("centre"))  # the mean of the training data, if the model subtracts it
        self.load_state_dict(state)

    def encode(self, x):
        x = x if self.centre is None else x - self.centre
        return self.mean(x), SHIFT + softplus(self.sd(x) - SHIFT, threshold=40)

    def decode(self, z):
        a = self.decoder(z)[..., : self.values]  # what follows are standard deviations or dispersions
        if self.kind == "sigmoid":
            return torch.sigmoid(a)
        if self.kind == "positive":
            return SHIFT + softplus(a - SHIFT, threshold=40)
        if self.kind == "softmax":
            return a.unflatten(-1, (-1, self.categories)).softmax(-1).flatten(-2)
        return a if self.centre is None else a + self.centre


def load(folder=Path(__file__).parent):
    with safe_open(Path(folder) / "model.safetensors", framework="pt") as file:
        state = {key: file.get_tensor(key) for key in file.keys()}
        return Model(state, file.metadata())
)---";

const NamedArray* find(const TrainState& state, const std::string& name) {
  const auto found = std::ranges::find(state.arrays, name, &NamedArray::name);
  return found == state.arrays.end() ? nullptr : &*found;
}

std::vector<float> floats_of(const NamedArray& array) {
  return std::visit([](const auto& values) { return std::vector<float>(values.begin(), values.end()); }, array.values);
}

// From our layout, (depth, coarse) or (coarse, depth) with the channel last in a window, to (coarse, fine, 4, 4).
template <class T>
std::vector<T> kernel_of(const std::vector<T>& weight, const Windows& w, Way way) {
  std::vector<T> result(weight.size());
  const auto depth = static_cast<std::size_t>(w.depth()), coarse = static_cast<std::size_t>(w.coarse),
             fine = static_cast<std::size_t>(w.fine);
  for (std::size_t k = 0; k < coarse; ++k)
    for (std::size_t at = 0; at < 16; ++at)
      for (std::size_t f = 0; f < fine; ++f) {
        const std::size_t row = at * fine + f;
        result[(k * fine + f) * 16 + at] = weight[way == Way::down ? row * coarse + k : k * depth + row];
      }
  return result;
}

// The convolution of layer l of `depth` layers; none if the layer is not a convolution.
struct Convolution {
  std::optional<Windows> windows;
  Way way = Way::down;
};
Convolution convolution_of(const std::string& network, std::size_t l, std::size_t depth,
                           const std::vector<Windows>& convolutions) {
  if (network != "decoder") return {l < convolutions.size() ? std::optional(convolutions[l]) : std::nullopt, Way::down};
  const std::size_t from_the_end = depth - 1 - l;
  return {from_the_end < convolutions.size() ? std::optional(convolutions[from_the_end]) : std::nullopt, Way::up};
}

std::size_t depth_of(const TrainState& state, const std::string& network) {
  std::size_t depth = 0;
  while (find(state, fmt::format("{}.weight[{}]", network, depth))) ++depth;
  return depth;
}

std::vector<ExportedLayer> layers_of(const TrainState& state, const std::string& network,
                                     const std::vector<Windows>& convolutions) {
  std::vector<ExportedLayer> layers;
  const std::size_t depth = depth_of(state, network);
  for (std::size_t l = 0; l < depth; ++l) {
    const NamedArray* weight = find(state, fmt::format("{}.weight[{}]", network, l));
    ExportedLayer layer{.inputs = static_cast<int>(weight->shape.at(0)),
                        .outputs = static_cast<int>(weight->shape.at(1)),
                        .weight = floats_of(*weight),
                        .bias = {}};
    if (const NamedArray* bias = find(state, fmt::format("{}.bias[{}]", network, l))) layer.bias = floats_of(*bias);
    if (const auto [windows, way] = convolution_of(network, l, depth, convolutions); windows) {
      layer.weight = kernel_of(layer.weight, *windows, way);
      layer.inputs = way == Way::down ? windows->large() : windows->small();
      layer.outputs = way == Way::down ? windows->small() : windows->large();
      layer.windows = windows;
      layer.way = way;
    }
    layers.push_back(std::move(layer));
  }
  if (layers.empty()) throw InputError(fmt::format("the checkpoint has no array '{}.weight[0]'", network));
  return layers;
}

const char* name_of(MeanOf mean) {
  constexpr const char* names[] = {"outputs", "sigmoid", "positive", "softmax"};
  return names[static_cast<int>(mean)];
}

std::string torch_loader_text() {
  const std::string_view loader = torch_loader, place = "{shift}";
  const auto at = loader.find(place);
  return fmt::format("{}{}{}", loader.substr(0, at), softplus_shift, loader.substr(at + place.size()));
}

// One network's array, transposed as PyTorch has weights.
template <class T>
std::vector<T> transposed(const std::vector<T>& values, std::int64_t rows, std::int64_t cols) {
  std::vector<T> result(values.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) result[j * rows + i] = values[i * cols + j];
  return result;
}

// A .npz file: a zip archive of .npy files, not compressed.
class NpzFile {
 public:
  void add(const std::string& name, const std::string& bytes) {
    const auto crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
    if (bytes_.size() + bytes.size() > most)
      throw InputError("the model is too large for .npz: expected less than 4 GB");
    const std::string file = name + ".npy";
    std::string shared;  // by the local header and the directory
    for (const int field : {20, 0, 0, 0, 0x21}) put(shared, static_cast<std::uint32_t>(field), 2);  // 1 January 1980
    for (const std::size_t field : {std::size_t{crc}, bytes.size(), bytes.size()})
      put(shared, static_cast<std::uint32_t>(field), 4);
    put(shared, static_cast<std::uint32_t>(file.size()), 2);
    put(shared, 0, 2);
    directory_ += std::string("PK\1\2\24\0", 6) + shared;
    for (const int width : {2, 2, 2, 4}) put(directory_, 0, width);
    put(directory_, static_cast<std::uint32_t>(bytes_.size()), 4);
    directory_ += file;
    bytes_ += "PK\3\4" + shared + file + bytes;
    ++count_;
  }

  std::string bytes() const {
    std::string all = bytes_ + directory_ + "PK\5\6";
    for (const auto& [value, width] : std::initializer_list<std::pair<std::size_t, int>>{
             {0, 2}, {0, 2}, {count_, 2}, {count_, 2}, {directory_.size(), 4}, {bytes_.size(), 4}, {0, 2}})
      put(all, static_cast<std::uint32_t>(value), width);
    return all;
  }

 private:
  static constexpr std::size_t most = 4'000'000'000;
  static void put(std::string& out, std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  }
  std::string bytes_, directory_;
  std::size_t count_ = 0;
};

template <class T>
std::string npy_of(const char* type, std::span<const std::int64_t> shape, const std::vector<T>& values) {
  return npy_header(type, shape) + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string npz_of(const RunToUse& run, const ExportedModel& model) {
  NpzFile file;
  for (const NamedArray& array : run.checkpoint.state.arrays)
    if (is_parameter(array))
      std::visit(
          [&]<class T>(const std::vector<T>& values) {
            file.add(array.name, npy_of(sizeof(T) == 4 ? "<f4" : "<f8", array.shape, values));
          },
          array.values);
  const DataFacts& data = *run.checkpoint.data;
  std::vector<std::int64_t> shape = {data.shape.rows, data.shape.cols};
  if (data.shape.channels > 1) shape.push_back(data.shape.channels);
  const std::int64_t sizes[] = {static_cast<std::int64_t>(shape.size())},
                     pixels[] = {static_cast<std::int64_t>(data.mean.size())};
  file.add("data.shape", npy_of("<i8", sizes, shape));
  if (!data.mean.empty()) file.add("data.mean", npy_of("<f8", pixels, data.mean));
  for (const auto& [key, text] : model.notes)
    file.add(key, npy_header(fmt::format("|S{}", std::max<std::size_t>(1, text.size())), {}) +
                      (text.empty() ? std::string(1, '\0') : text));
  return file.bytes();
}

std::vector<std::uint8_t> torch_file(const RunToUse& run, const ExportedModel& model) {
  TensorFile file;
  for (NamedArray& array : torch_arrays(run.checkpoint.state, model.convolutions))
    std::visit(
        [&](auto& values) {
          file.tensors.push_back({array.name, array.shape, std::move(values)});
        },
        array.values);
  const std::vector<double>& mean = run.checkpoint.data->mean;
  const std::vector<std::int64_t> size = {static_cast<std::int64_t>(mean.size())};
  if (!mean.empty() && std::holds_alternative<std::vector<double>>(file.tensors.front().values))
    file.tensors.push_back({"centre", size, mean});
  else if (!mean.empty())
    file.tensors.push_back({"centre", size, model.centre});
  file.notes = {model.notes.begin(), model.notes.end()};
  file.notes["format"] = "pt";
  return to_safetensors(file);
}

}  // namespace

bool is_parameter(const NamedArray& array) {
  return array.name.ends_with(']') && !array.name.starts_with("optimizer.");
}

ExportedModel exported(const RunToUse& run) {
  if (run.config.family.kind != AmortizedKind::diagonal)
    throw InputError(
        fmt::format("the run's q is {}, and an export has no form for it: it holds means and standard "
                    "deviations; the weights are in the run's checkpoint.safetensors",
                    name_of(amortized_names(), run.config.family.kind)));
  const TrainState& state = run.checkpoint.state;
  const ModelConfig& config = run.config.train.model;
  const std::vector<double>& mean = run.checkpoint.data->mean;
  const LikelihoodFacts facts = facts_of(config.density());
  const std::vector<Windows> windows = convolutions(config, run.checkpoint.data->shape);
  std::vector<std::string> texts;
  for (const Windows& w : windows) texts.push_back(fmt::format("{},{},{},{}", w.rows, w.cols, w.fine, w.coarse));
  TrainRunConfig copy = run.config;
  return {.mean = layers_of(state, "mean", windows),
          .sd = layers_of(state, "sd", windows),
          .decoder = layers_of(state, "decoder", windows),
          .convolutions = windows,
          .activation = config.activation,
          .mean_of = facts.mean,
          .categories = config.categories,
          .centre = std::vector<float>(mean.begin(), mean.end()),
          .notes = {{"model", train_settings(copy).text("model")},
                    {"density", std::string(facts.name)},
                    {"mean", name_of(facts.mean)},
                    {"categories", std::to_string(config.categories)},
                    {"activation", name_of(activation_names(), config.activation)},
                    {"values", std::to_string(run.checkpoint.data->shape.pixels())},
                    {"convolutions", fmt::format("{}", fmt::join(texts, ";"))},
                    {"iteration", std::to_string(state.iteration)},
                    {"hone_version", hone_version()}}};
}

std::vector<NamedArray> torch_arrays(const TrainState& state, const std::vector<Windows>& convolutions) {
  std::vector<NamedArray> arrays;
  for (const NamedArray& array : state.arrays) {
    if (!is_parameter(array)) continue;
    const std::size_t dot = array.name.find('.'), bracket = array.name.find('[');
    const std::string kind = array.name.substr(dot + 1, bracket - dot - 1);
    const int layer = std::stoi(array.name.substr(bracket + 1));
    NamedArray made{fmt::format("{}.{}.{}", array.name.substr(0, dot), 2 * layer, kind), {}, {}};
    const std::string network = array.name.substr(0, dot);
    const auto [windows, way] =
        convolution_of(network, static_cast<std::size_t>(layer), depth_of(state, network), convolutions);
    if (kind == "weight" && windows) {
      made.shape = {windows->coarse, windows->fine, 4, 4};
      std::visit([&](const auto& values) { made.values = kernel_of(values, *windows, way); }, array.values);
    } else if (kind == "weight") {
      made.shape = {array.shape.at(1), array.shape.at(0)};
      std::visit([&](const auto& values) { made.values = transposed(values, array.shape[0], array.shape[1]); },
                 array.values);
    } else {
      made.shape = {array.shape.back()};
      made.values = array.values;
    }
    arrays.push_back(std::move(made));
  }
  return arrays;
}

std::vector<fs::path> export_run(const RunToUse& run, ExportFormat format, const fs::path& folder) {
  const ExportedModel model = exported(run);
  std::vector<std::pair<std::string, std::string>> files;
  if (format == ExportFormat::onnx)
    files = {{"encoder.onnx", onnx_encoder(model)}, {"decoder.onnx", onnx_decoder(model)}};
  if (format == ExportFormat::npz) files = {{"model.npz", npz_of(run, model)}};
  if (format == ExportFormat::torch) {
    const std::vector<std::uint8_t> bytes = torch_file(run, model);
    files = {{"model.safetensors", std::string(bytes.begin(), bytes.end())}, {"hone_model.py", torch_loader_text()}};
  }
  check_can_make_folder(folder);
  fs::create_directories(folder);
  std::vector<fs::path> written;
  for (const auto& [name, bytes] : files) {
    write_file(folder / name, bytes);
    written.push_back(folder / name);
  }
  return written;
}

}  // namespace hone
