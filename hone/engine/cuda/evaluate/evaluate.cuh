#pragma once

#include <functional>
#include <vector>

#include "hone/engine/cuda/refinement/products/chains.cuh"
#include "hone/engine/cuda/train/run_memory.cuh"
#include "hone/engine/evaluation.hpp"
#include "hone/engine/shared_groups.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone::cuda {

// A decoder whose parameters do not change.
struct FixedDecoder {
  const Net& net;
  const float* parameters;
  Density density;
  Math math;
  int categories = 0;
};

// log p(x | z) of up to `most` rows at once and, if wanted, its gradients: one kernel per product.
class BatchDecoder {
 public:
  BatchDecoder(const FixedDecoder& decoder, int most, bool gradients, cudaStream_t stream)
      : decoder_(decoder),
        stream_(stream),
        path_(decoder.math, suits_halves(decoder.net, decoder.density, decoder.math)) {
    path_.allocate_scratch(decoder.net, {.rows = static_cast<std::size_t>(most),
                                         .compares = true,
                                         .gradients = gradients,
                                         .outputs = !facts_of(decoder.density).fused || decoder.net.convolves()});
    with_products({}, [](const auto& products) { products.prepare(); });
  }

  int parts() const { return Comparison::parts(decoder_.net.outputs()); }  // of sums of log p(x | z)

  // Rows of z, with `padded_width` floats from one to the next as in data.x, compared with the data. `gradient`:
  // ∇ log p(x | z); null: not wanted.
  void run(int rows, const float* z, Comparison data, float* gradient) const {
    data.density = decoder_.density;
    data.ldx = padded_width(decoder_.net.outputs() / facts_of(decoder_.density).outputs);
    data.residuals = gradient != nullptr;
    data.categories = decoder_.categories;
    const int ld = padded_width(decoder_.net.inputs());
    with_products({z, ld, {}, {}}, [&](const auto& products) {
      gradient ? products.compute_gradient(rows, data, gradient, ld) : products.compare(rows, data);
    });
  }

 private:
  template <class F>
  void with_products(const Tape& tape, F f) const {
    path_.with(decoder_.net, decoder_.parameters, tape, {}, stream_, f);
  }

  FixedDecoder decoder_;
  cudaStream_t stream_;
  ProductPath path_;
};

// The target of chains: p(x | z) of data on the device, which must outlive them.
struct ChainTarget {
  FixedDecoder decoder;
  const float* x;           // (data, padded pixels)
  const double* constant;   // of log p(x | z), one per datum
  int chains_of_datum = 1;  // one after the other
};

// Thousands of HMC chains that move together on a device.
class ChainWalk {
 public:
  ChainWalk(const ChainTarget& target, int count, const HmcShape& shape, cudaStream_t stream)
      : x_(target.x), shape_(shape), stream_(stream), decoder_(target.decoder, count, true, stream) {
    const int latent = target.decoder.net.inputs();
    const auto place = [&](Arena arena) {
      chains_.place(arena, count, latent, padded_width(latent), decoder_.parts());
      return arena.used();
    };
    memory_ = Memory<char>(place(Arena()));
    place(Arena(memory_.data()));
    chains_.constant = target.constant;
    chains_.chains_of_datum = target.chains_of_datum;
    check(cudaStreamSynchronize(cudaStreamLegacy), "clearing memory");  // or it would follow what `stream` does first
  }

  const ChainArrays& chains() const { return chains_; }
  void set_temperature(double beta) { chains_.beta = beta; }  // of the steps to come
  void place(std::span<const double> z) { copy_to(chains_.z, z, "placing chains"); }

  // Value and gradient at z; counts restart at 0.
  void begin() {
    launch_place(chains_, nullptr, 1, stream_);
    gradient(true);
    launch_begin(chains_, 1, stream_);
  }

  // One HMC step of every chain; `index` is that of its random numbers.
  void step(const ChainNumbers& numbers, const StepSizeArrays& sizes, std::uint32_t index, bool adapts) {
    launch_step(chains_, {numbers, sizes, shape_, index, adapts}, 1, stream_, [&](bool value) { gradient(value); });
  }

 private:
  void gradient(bool value) {
    float* const partial = value ? chains_.partial : nullptr;
    decoder_.run(chains_.count, chains_.input, {.x = x_, .rows_per_datum = chains_.chains_of_datum, .partial = partial},
                 chains_.likelihood_gradient);
  }

  const float* x_;
  HmcShape shape_;
  cudaStream_t stream_;
  BatchDecoder decoder_;
  Memory<char> memory_;
  ChainArrays chains_ = {};
};

// The parts of a run that an evaluation needs.
struct TrainedRun {
  const TrainPlan& plan;
  const Model<float>& model;  // with the run's parameters
  const float* parameters;    // the same on the device
  std::uint64_t seed;
  double step_size;
  Ranks* ranks;  // that share the data of an evaluation; null: none

  // Rows that the decoder takes together: `most`, unless values and deltas of its layers would fill more than 4 GiB.
  int rows_at_once(int most) const {
    double numbers = 0;
    for (int l = 0; l < plan.decoder.depth; ++l) numbers += 2.0 * plan.decoder.layer[l].outputs;
    return static_cast<int>(std::clamp((1 << 30) / numbers, 1.0, static_cast<double>(most)));
  }
  FixedDecoder decoder() const {
    const ModelConfig& model = plan.config.model;
    return {.net = plan.decoder,
            .parameters = parameters,
            .density = model.density(),
            .math = plan.math,
            .categories = model.categories};
  }
};

// Ranks share the first data in groups; points[i] becomes the result for datum i. Calls f(data of some groups, begin,
// number of these data that are wanted) for some groups at a time.
struct PartSize {
  int most, group;  // data; at least one group
};
template <class Point, class F>
void for_parts(const TrainedRun& run, const DataSet& data, const PartSize& size, std::span<Point> points, F f) {
  const int group = size.group, all = static_cast<int>(points.size()), most = std::max(1, size.most / group) * group;
  share_groups(run.ranks, {group, data.size(), all}, points, [&](const ItemRange& own) {
    const int end = std::min(own.end * group, all);
    for (int begin = own.begin * group; begin < end; begin += most) {
      const int wanted = std::min(most, end - begin), count = std::min(data.size() - begin, round_up(wanted, group));
      const PointData part = load_points(run.model, data, begin, count, padded_width(data.dimension()));
      std::ranges::copy(f(part, begin, wanted), points.begin() + begin);
    }
  });
}

// Progress of all ranks, estimated from rank 0, whose share is the first.
inline std::function<void(int)> progress_of_all(const std::function<void(int)>& progress, const Ranks* ranks, int all) {
  if (!progress || !ranks) return progress;
  return [&progress, ranks, all](int done) { progress(std::min(all, done * ranks->size())); };
}

// As Engine's function of the same name.
std::vector<PointEvaluation> evaluate(const TrainedRun& run, const DataSet& data, const EvaluationConfig& config,
                                      const std::function<void(int)>& progress);

}  // namespace hone::cuda
