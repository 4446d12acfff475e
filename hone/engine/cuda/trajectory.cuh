#pragma once

#include <optional>

#include "hone/engine/cuda/iteration.cuh"

namespace hone::cuda {

// A whole refinement as one kernel: value and gradient at z0, all HMC steps with their Metropolis decisions and, in the
// authors' mode, the step size's adaptation, and the pass through the decoder that the model's gradient needs. Where
// weights are in registers it may also make what comes before and after (`Surroundings`).
//
// A cluster of blocks carries some chains through everything. Its blocks hold the decoder's weights for the whole time,
// up to two hidden layers. Any other decoder is a team's (team_decoder.cuh): as many blocks as the device has for it,
// which are no cluster and hold what fits. `cluster` is said of both where the difference does not matter.
// A gradient goes so, for layers 0 … last:
//   h_0 = act(W_0ᵀ z + b)           every block
//   h_l slice → all blocks          one meeting of the cluster a layer, 0 < l < last
//   residual of the pixel slice, d_last = W r: partial sums for all units of h_{last−1}
//   0 < l < last: partial sums → their owners, slope, partial sums for the layer below; one meeting a layer
//   l = 0: slope(h_0) ⊙ partial, then W_0 times that: a partial ∇_z, since the slope is known to all; → all; one
//   meeting
// All blocks of a cluster then move its chains, with the same bits. Where there are chains enough for the whole device,
// a block alone is faster: nothing crosses (streamed_decoder.cuh). Nor does it where there are no hidden layers and
// every block has all weights in its registers (one_layer_decoder.cuh): then each block of the cluster has chains of
// its own, and they are together for the encoder's sake.
inline constexpr int trajectory_layers = 3;

// How a product's results are shared out over a block's warps: by tiles of 16 rows and, where there are few of them, by
// parts of k too, whose sums wait in the scratch memory (part, row, chain).
struct ProductPlan {
  int tiles = 1, parts = 0;  // parts = 0: not split
};

// Where a block keeps a decoder in shared memory: places in floats.
struct SharedPlan {
  int cluster = 0;
  ProductPlan forward[trajectory_layers], backward[trajectory_layers];
  int slice[trajectory_layers] = {};                  // outputs of a layer that a block holds
  unsigned slice_reciprocal[trajectory_layers] = {};  // 2³² / slice, rounded up
  int weight[trajectory_layers] = {}, weight_stride[trajectory_layers] = {}, bias[trajectory_layers] = {};
  int value[trajectory_layers] = {}, value_stride[trajectory_layers] = {};
  int z = 0, z_stride = 0, x = 0, x_stride = 0, residual = 0, residual_stride = 0;
  int slice_delta[trajectory_layers] = {}, slice_delta_stride[trajectory_layers] = {}, delta = 0, delta_stride = 0;
  int received = 0, received_size = 0, schedule = 0, boxes = 0, answer = 0, log_p = 0, scratch = 0;
  int partial_values = 0, received_values = 0;  // doubles
  int bytes = 0;                                // of these; then come the chains
};

// Where a block of a team keeps its part of a decoder (team_decoder.cuh), and what the team has in common. Tiles are of
// 16 units.
struct TeamMatrix {
  int n = 0, k = 0;  // tiles
  int at = 0;        // the first, among the packed weights
};
struct TeamPlan {
  static constexpr int answer_parts = 4;  // in which answers are summed
  bool halves = false, binary = false;    // weights; data
  int blocks = 0;                         // of a team
  int tiles[max_layers + 1] = {};         // of z, and of every layer's outputs
  int slice[max_layers] = {};             // of a layer's outputs, a block's
  TeamMatrix matrix[2 * max_layers];      // forward through a layer, and back, in turn
  ProductPlan how[2 * max_layers];        // columns at once
  // Places in shared memory. `first`: of all of the first hidden layer's values; 0: they cross as others do.
  // `resident`: of own weights of a matrix that stay there; 0: they do not.
  int input = 0, first = 0, operand = 0, own = 0, scratch = 0, kept[max_layers] = {}, bias[max_layers] = {};
  int answer = 0, value = 0, log_p = 0, schedule = 0, resident[2 * max_layers] = {};
  // Places in the team's memory, in 16 bytes. What crosses is there twice, the second time `exchange_size` further on.
  int values_at[max_layers] = {}, deltas_at[max_layers] = {}, exchange_size = 0, answers = 0, values = 0;
  std::size_t weights_size = 0, team_size = 0, run_size = 0;  // a run's packed weights, before its teams' memory
};

// Where the chains of a cluster keep their state: points are (chain, D).
struct ChainPlaces {
  int z = 0, gradient = 0, position = 0, momentum = 0, slope = 0, drawn = 0, first_gradient = 0;
  int value = 0, proposed = 0, energy = 0, acceptance = 0, constant = 0, log_uniform = 0, next_log_uniform = 0,
      next_energy = 0, first_value = 0, epsilon = 0;
  int length = 0, next_length = 0, proposals = 0, nonfinite = 0, counts = 0;
  int bytes = 0;  // with what lies before

  constexpr ChainPlaces() = default;
  __host__ __device__ constexpr ChainPlaces(int begin, int chains, int latent, bool keeps_first = false) {
    Places places(begin);
    for (int* p : {&z, &gradient, &position, &momentum, &slope, &drawn}) *p = places.take<double>(chains * latent);
    for (int* p : {&value, &proposed, &energy, &acceptance, &constant, &log_uniform, &next_log_uniform, &next_energy})
      *p = places.take<double>(chains);
    if (keeps_first) {  // the beginning, for the objective
      first_gradient = places.take<double>(chains * latent);
      first_value = places.take<double>(chains);
    }
    epsilon = places.take<double>(2);
    for (int* p : {&length, &next_length, &proposals, &nonfinite}) *p = places.take<int>(chains);
    counts = places.take<unsigned>(1);
    bytes = places.bytes();
  }
};

// Where the weights are: in registers or, for many chains, streaming by a block alone, or kept by it where they fit (as
// halves both: ReLU, Bernoulli, sizes within those of TwoHiddenLayers or NoHiddenLayers and of StreamedShape), or in
// the shared memory of a cluster, or in the device's cache, from which a team reads them.
enum class WeightPlace { registers, shared, streamed, cache };
inline constexpr int streamed_warps = 8;  // of such a block alone

struct TrajectoryPlan {
  WeightPlace weights = WeightPlace::shared;
  int depth = 0, cluster = 0, chains = 0;  // layers; blocks and chains of a cluster
  bool refines = true;                     // there are steps to make
  int own = 0;                             // fragments in a thread's registers
  int bytes = 0;                           // of shared memory
  ChainPlaces places;
  SharedPlan shared;
  TeamPlan team;
};

// The encoder's layers above the first and the objective, where a refinement's kernel makes them too: the cluster that
// refines eight data's draws makes them before, and what follows from them after.
struct Surroundings {
  bool there = false;
  EncoderSpec encoder = {};
  ObjectiveSpec objective = {};
  EncodeShape encode;
  AscendShape ascend;
  int begin = 0, draws = 0, bytes = 0;  // of shared memory: theirs, q's draws, and with what lies before
  int stage = 0, staged = 0;            // where so many of a thread's own fragments wait while the encoder runs
};

struct TrajectorySpec {
  Net decoder;
  Density density;
  Tape tape;  // for the model's gradient
  HmcShape shape;
  int steps, adapting;
  Adapt adapt;
  StepSizeArrays sizes;
  TrajectoryPlan plan;
  int clusters;  // of a run
  Surroundings around;
  uint4* team_memory = nullptr;  // of all runs
};
using TrajectoryKernel = void (*)(Space, TrajectorySpec, int);

// Bytes of shared memory that a block may have; 0 where the device has no clusters, or this program no code for them.
int cluster_shared_memory();

// How the decoder fits the device with so many chains a cluster; nothing where it does not, or where the device knows
// no clusters. `blocks` = 0: the smallest cluster of several that fits and keeps the batch on the device at once; 1: a
// block alone.
struct DecoderShape {
  Net net;
  Density density;
  bool binary;  // the data
  Math math;
  bool refines;
};
std::optional<TrajectoryPlan> plan_trajectory(const DecoderShape& decoder, int batch, int chains, int blocks);
// The same for a team of blocks, whose weights come from the cache: `blocks` = 0: as many as the device has for each.
std::optional<TrajectoryPlan> plan_teams(const DecoderShape& decoder, int batch, int runs, int chains, int blocks);

// The kernels of all kinds: sizes of a plan (0 bytes where it does not fit), and what executes it.
TrajectoryPlan plan_registers(const DecoderShape& decoder, int chains);
TrajectoryKernel register_kernel(const TrajectoryPlan& plan);
// Packs of 16 bytes that a decoder's weights need as halves in the order of the registers; 0: they have no room there.
std::size_t packed_size(const Net& net);
TrajectoryPlan plan_streamed(const DecoderShape& decoder);
TrajectoryKernel streamed_kernel(const TrajectoryPlan& plan);
std::size_t streamed_size(const Net& net);  // as packed_size, by tiles
void launch_pack_streamed(const Space& space, const Net& net, int runs, cudaStream_t stream);
TrajectoryPlan plan_shared(const DecoderShape& decoder, int chains, int blocks);
TrajectoryKernel shared_kernel(const TrajectoryPlan& plan, Math math);
TrajectoryPlan plan_team(const DecoderShape& decoder, int chains, int blocks, int most);
double team_time(const TrajectoryPlan& plan);  // microseconds of a gradient, about (H200)
TrajectoryKernel team_kernel(const TrajectoryPlan& plan, Math math);
void launch_pack_team(const Space& space, const TrajectorySpec& spec, Math math, int runs, cudaStream_t stream);

// What a plan's kernel makes of the encoder and the objective; not there where it cannot.
Surroundings plan_surroundings(const TrajectoryPlan& plan, const EncoderSpec& encoder, const ObjectiveSpec& objective,
                               int latent);

// How many clusters of a plan the device holds at a time.
int resident_clusters(const TrajectoryPlan& plan, Math math);

// All clusters of a launch must be resident at a time where step sizes adapt inside, and all teams always, since their
// blocks wait for each other: the caller launches waves of runs, and nothing else that stays may run on the device.
void launch_trajectory(const Space& space, const TrajectorySpec& spec, Math math, int first_run, int runs,
                       cudaStream_t stream);

}  // namespace hone::cuda
