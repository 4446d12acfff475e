#pragma once

#include <vector>

#include "hone/engine/cuda/batch_decoder.cuh"
#include "hone/engine/cuda/runs.cuh"

namespace hone::cuda {

// What chains are chains of: p(x | z) of data on the device, which must outlive them.
struct ChainTarget {
  const Net& decoder;
  const float* parameters;
  Density density;
  const float* x;          // (data, padded pixels)
  const double* constant;  // of log p(x | z), one a chain
  int chains_of_datum;     // one after the other
};

// Thousands of HMC chains that move together on a device.
template <Math math>
class ChainWalk {
 public:
  ChainWalk(const ChainTarget& target, int count, const HmcShape& shape, cudaStream_t stream)
      : target_(target),
        shape_(shape),
        stream_(stream),
        decoder_(target.decoder, target.parameters, target.density, count, true, stream),
        points_(5 * size_of(count)),
        figures_(4 * static_cast<std::size_t>(count)),
        counts_(4 * static_cast<std::size_t>(count)),
        floats_(static_cast<std::size_t>(count) * (2 * ld() + decoder_.parts())) {
    const std::size_t n = count, size = size_of(count);
    double *p = points_.data(), *f = figures_.data();
    for (double** array : {&chains_.z, &chains_.gradient, &chains_.position, &chains_.momentum, &chains_.slope})
      *array = p, p += size;
    for (double** array : {&chains_.value, &chains_.proposed, &chains_.energy, &chains_.acceptance}) *array = f, f += n;
    chains_.count = count;
    chains_.latent = target.decoder.inputs();
    chains_.ld = ld();
    chains_.length = counts_.data();
    chains_.proposals = counts_.data() + n;
    chains_.nonfinite = counts_.data() + 2 * n;
    chains_.outcome = counts_.data() + 3 * n;
    chains_.input = floats_.data();
    chains_.answer = floats_.data() + n * ld();
    chains_.partial = floats_.data() + 2 * n * ld();
    chains_.parts = decoder_.parts();
    chains_.constant = target.constant;
    check(cudaStreamSynchronize(cudaStreamLegacy), "clearing memory");  // or it would follow what `stream` does first
  }

  const ChainArrays& chains() const { return chains_; }
  void set_temperature(double beta) { chains_.beta = beta; }  // of the steps to come
  void place(std::span<const double> z) { points_.upload(z); }
  void copy_first_chains(int count, std::vector<double>& acceptance, std::vector<int>& nonfinite) const {
    const auto n = static_cast<std::size_t>(chains_.count);
    acceptance = figures_.download(3 * n, count);
    nonfinite = counts_.download(2 * n, count);
  }

  // Value and gradient where the chains stand; counts begin anew.
  void begin() {
    launch_place(chains_, 1, stream_);
    gradient(true);
    launch_begin(chains_, 1, stream_);
  }

  // One HMC step of every chain; `index` is that of its random numbers.
  void step(const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t index, bool adapt) {
    launch_start(chains_, numbers, sizes, shape_, index, 1, stream_);
    for (int leap = 1; leap <= shape_.leapfrog + shape_.jitter; ++leap) {
      gradient(leap >= shape_.leapfrog - shape_.jitter);
      launch_leap(chains_, sizes, leap, 1, stream_);
    }
    launch_accept(chains_, numbers, sizes, index, adapt, 1, stream_);
  }

 private:
  int ld() const { return padded_width(target_.decoder.inputs()); }
  std::size_t size_of(int count) const { return static_cast<std::size_t>(count) * target_.decoder.inputs(); }

  void gradient(bool value) {
    decoder_.run({chains_.input, chains_.ld, chains_.count, target_.x, padded_width(target_.decoder.outputs()),
                  target_.chains_of_datum, value ? const_cast<float*>(chains_.partial) : nullptr, chains_.answer});
  }

  ChainTarget target_;
  HmcShape shape_;
  cudaStream_t stream_;
  BatchDecoder<math> decoder_;
  Memory<double> points_, figures_;
  Memory<int> counts_;
  Memory<float> floats_;
  ChainArrays chains_ = {};
};

}  // namespace hone::cuda
