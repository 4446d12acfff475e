#pragma once

#include "hone/engine/cuda/device/cluster.cuh"
#include "hone/engine/cuda/train/space.cuh"

namespace hone::cuda {

// Values of every datum: the ELBO, f at z_t, and the values that the control variates of the terms learn from.
struct DatumValues {
  double *elbo, *refined, *terms;  // terms: (2, batch)

  __device__ DatumValues(const Space& space, int run)
      : elbo(space.of(space.values, run)), refined(elbo + space.batch), terms(elbo + 2 * space.batch) {}
};

// Threads of a block that learn; the last warp writes the iteration's metrics.
__device__ inline int learners() { return static_cast<int>(blockDim.x) - 32; }

// C_n of a datum that occurs once in the batch learns from its value; of one that occurs twice, from both in turn.
// `datum`: those of the batch, perhaps in shared memory.
__device__ inline void learn_baseline(const Space& space, const ObjectiveSpec& spec, int run, int term,
                                      const double* value, const int* datum) {
  const double decay = spec.baseline_decay;
  const int* alive = space.of(space.alive, run);
  if (space.of(space.now, run)->iteration <= spec.shared_until) {
    if (threadIdx.x >= 32) return;
    RunState& state = *space.of(space.state, run);
    double sum = 0, weight = 0;
#pragma unroll 4
    for (int c = threadIdx.x; c < space.batch; c += 32) {
      const double there = alive[c], v = value[c];
      sum += there > 0 ? v : 0;
      weight += there;
    }
    sum = warp_sum(sum);
    weight = warp_sum(weight);
    if (threadIdx.x == 0 && weight > 0) state.shared[term] = decay * state.shared[term] + (1 - decay) * sum / weight;
    return;
  }
#pragma unroll 1
  for (int c = threadIdx.x; c < space.batch; c += learners()) {
    double& kept = space.of(space.baseline[term], run)[datum[c]];
    double now = kept;  // read early; of no use if another column learns for this one
    const auto learned = [&](int column) { return alive[column] ? decay * now + (1 - decay) * value[column] : now; };
    const double usually = learned(c);
    int times = 0, last = c;
#pragma unroll 4
    for (int other = 0; other < space.batch; ++other)
      if (datum[other] == datum[c]) ++times, last = other;
    if (last != c) continue;  // that one learns for all
    if (times > 1)
#pragma unroll 1
      for (int other = 0; other <= c; ++other)
        if (datum[other] == datum[c]) now = learned(other);
    kept = times > 1 ? now : usually;
  }
}

__device__ inline void write_metrics(const Space& space, const ObjectiveSpec& spec, int run, const DatumValues& values,
                                     int lane) {
  const ChainArrays chains = space.chains.of(run);
  const int* alive = space.of(space.alive, run);
  const bool refines = spec.objective.refines;
  double sum[6] = {};  // weight, elbo, f at z_t, acceptance, proposals, not finite
#pragma unroll 4
  for (int c = lane; c < space.batch; c += 32) {  // all are read before any is waited for
    const double terms[6] = {static_cast<double>(alive[c]),
                             values.elbo[c],
                             values.refined[c],
                             chains.acceptance[c],
                             static_cast<double>(chains.proposals[c]),
                             static_cast<double>(chains.nonfinite[c])};
    for (int i = 0; i < 6; ++i) sum[i] += terms[0] > 0 ? terms[i] : 0;
  }
  warp_sums(sum);
  if (lane != 0) return;
  RunState& state = *space.of(space.state, run);
  const std::uint32_t iteration = space.of(space.now, run)->iteration;
  const double share = 1 / sum[0];
  MetricsRow row = {};
  row.elbo = sum[1] * share;
  row.vcd = sum[2] * share - row.elbo;  // eq. new_divergence_rearranged
  row.refined = refines;
  row.dropped = space.batch - static_cast<int>(sum[0]);
  if (refines) {
    row.acceptance = sum[3];
    row.proposals = static_cast<int>(sum[4]);
    row.nonfinite = static_cast<int>(sum[5]);
  }
  space.of(space.metrics, run)[iteration - state.chunk_first] = row;
  if (refines && spec.adapt == Adapt::between && row.proposals > 0)
    state.step_size = spec.sizes.rule.next(state.step_size, row.acceptance / row.proposals);
  state.next = iteration + 1;
}

// After the objective's gradient: the control variates' learning, the step size between refinements, the iteration's
// metrics. One block per run, which waits for the kernel before; `shared` holds `scratch` numbers.
__device__ inline void learn(const Space& space, const ObjectiveSpec& spec, int run, int* shared, int scratch) {
  const DatumValues values(space, run);
  const int* datum = space.of(space.datum, run);
  if (space.batch <= scratch) {
#pragma unroll 1
    for (int c = threadIdx.x; c < space.batch; c += blockDim.x) shared[c] = __ldcg(datum + c);
    datum = shared;
  }
  __syncthreads();
  wait_for_previous();
  if (const int lane = this_thread() - learners(); lane >= 0) return write_metrics(space, spec, run, values, lane);
#pragma unroll 1
  for (int term = 0; term < 2; ++term)
    if (space.baseline[term]) learn_baseline(space, spec, run, term, values.terms + term * space.batch, datum);
}

}  // namespace hone::cuda
