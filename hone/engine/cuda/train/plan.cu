#include "hone/engine/cuda/train/plan.cuh"

#include <algorithm>

#include "hone/latent/likelihoods.hpp"

namespace hone::cuda {
namespace {

// How long a refinement takes, relative to one with 8 chains per cluster in registers, as measured (H200, the paper's
// shapes).
double refinement_time(const RefinementPlan& plan) {
  const bool hidden = plan.depth > 1;
  if (plan.kind == PathKind::streamed) return hidden ? 3.8 : 3.1;
  return plan.chains == 8 ? 1 : hidden ? 1.6 : 1.3;
}

struct Choice {
  std::optional<RefinementPlan> plan;
  int wave = 1;
};

// One kernel where the decoder fits. With several runs or a large batch the device is full anyway, so more chains share
// a cluster, or a block works alone.
Choice choose_refinement(const DecoderShape& decoder, int batch, int runs, const PathOptions& options) {
  Choice choice;
  double best = infinity;
  for (const RefinementPlan& plan : plan_refinements(decoder, batch)) {
    if (options.kind != PathKind::chosen && options.kind != plan.kind) continue;
    if (options.chains != 0 && options.chains != plan.chains) continue;
    const int wave = resident_clusters(plan) / ceil_div(batch, plan.chains);
    const double cost = ceil_div(runs, wave) * refinement_time(plan);
    if (cost >= best) continue;
    best = cost;
    choice = {plan, wave};
  }
  return choice;
}

Net net_of(const PaddedTensors& padded, const std::string& name, const NetworkConfig& config) {
  Net net;
  net.activation = config.activation;
  net.depth = static_cast<int>(config.depth());
  if (net.depth > max_layers)
    throw InputError("the cuda engine takes networks of at most " + std::to_string(max_layers - 1) +
                     " hidden layers, convolutions among them");
  for (int l = 0; l < net.depth; ++l) {
    const std::string index = "[" + std::to_string(l) + "]";
    const PaddedTensor* bias = padded.find(name + ".bias" + index);
    Layer& layer = net.layer[l];
    layer = {.inputs = config.below(l),
             .outputs = config.units(l),
             .ld = padded_width(config.units(l)),
             .weight = padded.find(name + ".weight" + index)->begin,
             .bias = bias ? bias->begin : 0,
             .has_bias = bias != nullptr};
    const Windows* windows = config.windows(l);
    if (!windows) continue;
    layer.kind = l < static_cast<int>(config.down.size()) ? LayerKind::down : LayerKind::up;
    layer.windows = WindowIndex::of(*windows);
  }
  return net;
}

std::string words_of(const TrainPlan& plan) {
  std::string words;
  if (const auto& kernel = plan.refinement) {
    const bool registers = kernel->kind == PathKind::registers;
    words = "one kernel per refinement: " + std::to_string(ceil_div(plan.config.batch, kernel->chains)) +
            (registers ? " clusters of " + std::to_string(kernel->cluster) + " blocks, " : " blocks alone, ") +
            std::to_string(kernel->chains) + " chains each, weights " +
            (registers           ? "in registers"
             : kernel->depth > 1 ? "streaming by"
                                 : "in shared memory");
  } else {
    words = std::string("one kernel per product") + (plan.halves() ? ", in halves" : "") + " (" +
            (plan.decoder.convolves() ? "convolutions: products of gathered windows"
                                      : "layers or batch are large, or a device is below compute capability 9.0") +
            ")";
  }
  return words + (plan.around.there ? "; encoder and objective in the same kernel" : "; encoder product by product");
}

}  // namespace

PaddedTensors::PaddedTensors(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    all.push_back({tensor, size});
    size += static_cast<std::size_t>(tensor.rows) * padded_width(tensor.cols);
  }
}

const PaddedTensor* PaddedTensors::find(const std::string& name) const {
  const auto found = std::ranges::find(all, name, &Tensor::name);
  return found == all.end() ? nullptr : &*found;
}

TrainPlan make_train_plan(const TrainConfig& config, const DataSet& train, const Model<float>& whole, int runs,
                          const PathOptions& options) {
  const ModelConfig& model = config.model;
  const int pixels = train.dimension();
  const Math math = config.precision == Precision::float32 ? Math::fp32 : Math::tf32;
  const PaddedTensors padded(whole.parameters().tensors());
  const int outputs = outputs_of(model.density(), {pixels, model.categories});
  const std::vector<Windows> down = convolutions(model, train.shape()), up(down.rbegin(), down.rend());
  const Net decoder = net_of(
      padded, "decoder",
      {.inputs = model.latent, .hidden = model.hidden, .outputs = outputs, .activation = model.activation, .up = up});
  const Net encoder = net_of(padded, "mean",
                             {.inputs = pixels,
                              .hidden = model.encoder_hidden,
                              .outputs = model.latent,
                              .activation = model.activation,
                              .down = down});
  const Choice choice =
      choose_refinement({decoder, model.density(), math, config.objective->refines()}, config.batch, runs, options);
  const Surroundings around = choice.plan ? plan_surroundings(*choice.plan, encoder, model.latent) : Surroundings();
  TrainPlan plan{.config = config,
                 .runs = runs,
                 .data = train.size(),
                 .pixels = pixels,
                 .padded = padded,
                 .math = math,
                 .decoder = decoder,
                 .encoder = encoder,
                 .net_parameters = padded.find("sd.weight[0]")->begin - padded.find("mean.weight[0]")->begin,
                 .refinement = choice.plan,
                 .wave = choice.wave,
                 .around = around,
                 // where the kernel encodes, the likelihood is Bernoulli and data are bits
                 .first_parts = around.there ? ceil_div(ceil_div(pixels, 64), FirstLayerSums::words) : 0,
                 .input_scale = whole.input_scale(),
                 .words = {}};
  plan.words = words_of(plan);
  return plan;
}

}  // namespace hone::cuda
