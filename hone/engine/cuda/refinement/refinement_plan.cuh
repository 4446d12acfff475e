#pragma once

#include <optional>
#include <vector>

#include "hone/engine/cuda/device/math.cuh"
#include "hone/engine/cuda/encoder/encoder_shape.cuh"
#include "hone/engine/cuda/train/space.cuh"

namespace hone::cuda {

// A whole refinement as one kernel: value and gradient at z0, all HMC steps with their Metropolis decisions and, in the
// authors' mode, the step size's adaptation, and the pass through the decoder for the model's gradient. With weights in
// registers it may also compute what comes before and after (`Surroundings`). The kinds: docs/cuda.md.

// Where the chains of a cluster keep their state: points are (chain, D).
template <int chains, int latent, bool keeps_first = false>
struct ChainPlaces : Places {  // bytes(): with what lies before
  static constexpr int points = chains * latent;
  int z = take<double>(points), gradient = take<double>(points), position = take<double>(points),
      momentum = take<double>(points), proposed_gradient = take<double>(points), drawn = take<double>(points);
  int value = take<double>(chains), proposed = take<double>(chains), energy = take<double>(chains),
      acceptance = take<double>(chains), constant = take<double>(chains), log_uniform = take<double>(chains),
      next_log_uniform = take<double>(chains), next_energy = take<double>(chains);
  int first_gradient = take<double>(keeps_first * points), first_value = take<double>(keeps_first * chains);
  int epsilon = take<double>(2);
  int length = take<int>(chains), next_length = take<int>(chains), proposals = take<int>(chains),
      nonfinite = take<int>(chains);
  int counts = take<unsigned>(1);

  explicit __host__ __device__ constexpr ChainPlaces(int begin) : Places(begin) {}
};

// How refinements are executed: one kernel per refinement, if the decoder suits halves and one of TwoHiddenLayers,
// NoHiddenLayers and StreamedShape holds it; otherwise one kernel per product.
enum class PathKind { chosen, registers, streamed, products };

struct RefinementSpec;
using RefinementKernel = void (*)(Space, RefinementSpec, int);

struct RefinementPlan {
  PathKind kind = PathKind::registers;     // or streamed
  RefinementKernel kernel = nullptr;       // of space, spec and the first run
  int depth = 0, cluster = 0, chains = 0;  // layers; blocks and chains of a cluster
  int threads = 0, bytes = 0;              // of a block; bytes of its shared memory
  int packed = 0;                          // 16 bytes each, of all of a decoder's weights
  int own = 0;                             // fragments in a thread's registers
};

// The encoder's layers above the first, and the objective, if a refinement's kernel computes them: the cluster that
// refines the draws of eight data draws them before and goes back through the encoder after.
struct Surroundings {
  bool there = false;
  EncoderSpec encoder = {};
  ObjectiveSpec objective = {};
  EncodeShape encode;
  AscendShape ascend;
  int begin = 0, draws = 0, bytes = 0;  // of shared memory: theirs, q's draws, and with what lies before
  int stage = 0, staged = 0;            // where a thread's own fragments wait while the encoder runs, and how many
};

struct RefinementSpec {
  Net decoder;
  Tape tape;  // for the model's gradient
  HmcShape shape;
  int steps, adapting;
  Adapt adapt;
  StepSizeArrays sizes;
  RefinementPlan plan;
  int clusters;  // of a run
  Surroundings around;
};

struct DecoderShape {
  Net net;
  Density density;
  Math math;
  bool refines;  // there are steps to make
};
// The plans by which it may go: none if the decoder does not fit, if the device does not hold all chains of a batch at
// once, or if it has no clusters.
std::vector<RefinementPlan> plan_refinements(const DecoderShape& decoder, int batch);

// Sizes for a plan's kernel that computes the encoder and the objective too; `there` is false if it cannot. The caller
// fills in the arrays.
Surroundings plan_surroundings(const RefinementPlan& plan, const Net& encoder, int latent);

// How many clusters of a plan the device (or the part of it that is ours) holds at a time.
int resident_clusters(const RefinementPlan& plan);

// If step sizes adapt inside, all clusters of a launch must be resident at once: the caller launches waves of runs, and
// nothing else may stay on the device.
void launch_refinement(const Space& space, const RefinementSpec& spec, int first_run, int runs, cudaStream_t stream);

}  // namespace hone::cuda
