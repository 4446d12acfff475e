#pragma once

#include "hone/engine/cuda/evaluate/batch_decoder.cuh"
#include "hone/engine/cuda/refinement/products/chains.cuh"

namespace hone::cuda {

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
      : target_(target), shape_(shape), stream_(stream), decoder_(target.decoder, count, true, stream) {
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
  void step(const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t index, bool adapts) {
    launch_step(chains_, {numbers, sizes, shape_, index, adapts}, 1, stream_, [&](bool value) { gradient(value); });
  }

 private:
  void gradient(bool value) {
    decoder_.run({.rows = chains_.count,
                  .rows_per_datum = target_.chains_of_datum,
                  .z = chains_.input,
                  .x = target_.x,
                  .partial = value ? chains_.partial : nullptr,
                  .gradient = chains_.likelihood_gradient});
  }

  ChainTarget target_;
  HmcShape shape_;
  cudaStream_t stream_;
  BatchDecoder decoder_;
  Memory<char> memory_;
  ChainArrays chains_ = {};
};

}  // namespace hone::cuda
