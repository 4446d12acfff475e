#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

/// Which data make up a minibatch: a function of the iteration alone, so that resuming needs no state.
class Minibatches {
 public:
  virtual ~Minibatches() = default;
  virtual void fill(std::uint32_t iteration, std::span<int> data) = 0;  ///< iterations count from 1
};

/// Walks through a random permutation of the data. When it is used up, perhaps in the middle of a minibatch, the next
/// permutation begins.
std::unique_ptr<Minibatches> permuted_minibatches(int data, std::uint64_t seed);

/// How an engine executes.
struct EngineOptions {
  std::vector<std::uint64_t> seeds = {};  ///< one run per seed; empty: one run with the configuration's own seed
  int threads = 1;                        ///< of the cpu engine; results do not depend on it
  /// To replay a single run on the cpu engine: recorded random numbers; null: Philox with the run's seed.
  const RandomSource* random = nullptr;
  /// To replay a single run on the cpu engine: recorded minibatches; null: permutations of the data.
  std::unique_ptr<Minibatches> minibatches = {};

  /// Whether a replay was asked for.
  bool replays() const { return random || minibatches; }
};

/// What `automatic` means for a configuration on this machine: cuda if it is available and supports the configuration,
/// otherwise cpu. Other kinds are returned as they are.
EngineKind chosen_engine(EngineKind kind, const TrainConfig& config);

/// Makes an engine; `automatic` is chosen_engine's choice, but always cpu for a replay. `train` must outlive the
/// engine. Throws KeyError if the configuration is impossible or the engine is not available, DataError if
/// the data do not suit the model.
std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options = {});

/// How many of `runs` runs an engine of this kind should train as one group: all on cuda; one on the cpu, whose threads
/// already share one minibatch.
int side_by_side(EngineKind kind, int runs);

/// A CUDA device.
struct CudaDevice {
  std::string name;     ///< the device's name
  int major;            ///< compute capability, first number
  int minor;            ///< compute capability
  int multiprocessors;  ///< number of multiprocessors
  std::size_t memory;   ///< bytes
};

/// The devices that the cuda engine can use, or why there are none.
struct CudaSupport {
  std::vector<CudaDevice> devices;  ///< all devices of the machine
  std::string missing;              ///< why the engine is not available; empty if it is
  std::size_t own = 0;              ///< the device of this process: those of one job on a machine take them in turn
  /// The device of this process; only where nothing is missing.
  const CudaDevice& own_device() const { return devices[own]; }
};
/// Asks the driver for the devices.
CudaSupport cuda_support();

}  // namespace hone
