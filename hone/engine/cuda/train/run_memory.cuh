#pragma once

#include <vector>

#include "hone/engine/cuda/convolution/gradients.cuh"
#include "hone/engine/cuda/product/network_products.cuh"
#include "hone/engine/cuda/train/plan.cuh"

namespace hone::cuda {

inline constexpr std::uint32_t chunk = 1024;  // iterations whose minibatches and metrics lie on the device

// The arrays of run 0; those of run r are r · space.stride floats further.
struct RunPlaces {
  Space space = {};
  Tape encoder_tape = {}, decoder_tape = {};  // the encoder's input is the minibatch, of either slot
  FirstLayerSums first_sums = {};
  ProductPath encoder_path, decoder_path;  // with their scratch memory, where there are products
  GradientScratch gradient_scratch = {};   // of convolutions
};

struct PointData {
  std::vector<float> x;          // (points, ld)
  std::vector<double> constant;  // of log p(x | z), one per point
};
// data[begin, begin + count), with rows of `ld` floats.
PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld);

// What runs hold on the device, and what they have in common: training data and seeds.
class RunMemory {
 public:
  RunMemory(const TrainPlan& plan, const Model<float>& model, const DataSet& train,
            const std::vector<std::uint64_t>& seeds);

  const RunPlaces& places() const { return places_; }
  const Space& space() const { return places_.space; }
  const std::uint64_t* seeds() const { return seeds_.data(); }
  DataView data() const;
  StepSizeArrays step_sizes() const;  // one for all chains of a run

  template <class T>
  T* of(T* pointer, int run) const {
    return at(pointer, run * space().stride);
  }
  RunState state(int run) const { return copy_of(of(space().state, run), 1, "reading a run's state").front(); }
  void set_state(int run, const RunState& state) {
    copy_to(of(space().state, run), std::span(&state, 1), "writing a run's state");
  }
  // Parameters or moments, in the model's layout.
  void upload(float* to, int run, std::span<const float> values);
  void download(const float* from, int run, std::span<float> values) const;

 private:
  const TrainPlan& plan_;
  Memory<char> memory_;
  RunPlaces places_;
  Memory<std::uint64_t> bits_, seeds_;
  Memory<float> values_;
  Memory<double> constants_;
};

}  // namespace hone::cuda
