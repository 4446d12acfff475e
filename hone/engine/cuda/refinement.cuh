#pragma once

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/trajectory.cuh"

namespace hone::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Where q's draws of a cluster lie, (chain, D), if another kernel made them.
__device__ inline const double* draws_of(const Space& space, int run, int first) {
  return space.of(space.z0, run) + static_cast<std::size_t>(first) * space.latent;
}

// The chains of a cluster through a whole refinement. Every block of the cluster moves all of them, with the same bits,
// a warp a chain (or several) and one lane a dimension: within a chain no barrier is needed. The decoder is a block's
// part of log p(x | z):
//   NC, block_warps, rank()                  chains; warps of a block; this block's number in the cluster
//   most_dims                                dimensions of z at most; 0: not known to the compiler
//   places(), point_stride()                 where the chains are kept, and doubles from a chain to the next: constants
//                                            where the compiler can know them
//   set_input(chain, d, z)                   a point to evaluate at (a barrier follows)
//   evaluate<records>(wants_value, value)    all threads; `records`: writes the tape. With `value` (−∞: lost) there is
//                                            no answer; null: none is lost, and there is one if the value is wanted
//   gradient(chain, d), log_likelihood(chain)   the answer, of all blocks
template <class Decoder>
class Refinement {
 public:
  static constexpr int NC = Decoder::NC, warps = Decoder::block_warps;

  __device__ Refinement(Decoder& decoder, const Space& space, const TrajectorySpec& spec, char* shared, int run,
                        int first)
      : decoder_(decoder), space_(space), spec_(spec), run_(run), first_(first), shared_(shared) {}

  // From the draws (chain, D) on. `stay`: without any step.
  template <bool stay = false>
  __device__ void run(const double* draws);

 private:
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  __device__ int point(int chain, int d) const { return chain * decoder_.point_stride() + d; }
  __device__ __forceinline__ decltype(auto) at() const { return decoder_.places(); }
  __device__ double* doubles(int place) const { return reinterpret_cast<double*>(shared_ + place); }
  __device__ int* ints(int place) const { return reinterpret_cast<int*>(shared_ + place); }
  __device__ double& epsilon(int step) const { return doubles(at().epsilon)[step & 1]; }  // of a step: two in turn
  template <class F>  // f(chain) for the chains of a warp that begins with `first`
  static __device__ __forceinline__ void each_chain(int first, F f) {
    if constexpr (NC <= warps) {
      if (first < NC) f(here_only(first));
    } else {
#pragma unroll 1
      for (int chain = first; chain < NC; chain += warps) f(here_only(chain));
    }
  }
  template <class F>  // f(d) for the lane's dimensions
  __device__ __forceinline__ void each_dimension(F f) const {
    if constexpr (Decoder::most_dims > 0) {
#pragma unroll
      for (int i = 0; i < (Decoder::most_dims + 31) / 32; ++i)
        if (const int d = here_only(lane_) + 32 * i; d < space_.latent) f(d);
    } else {
      for (int d = lane_; d < space_.latent; d += 32) f(d);
    }
  }

  __device__ bool adapts(int step) const { return spec_.adapt == Adapt::inside && step < spec_.adapting; }

  __device__ void load(const double* draws);
  __device__ double value_here(int chain, double prior) const;
  __device__ void begin(int chain);
  __device__ void fetch(int chain, int step);
  __device__ void weigh(int chain);
  __device__ void start(int chain, int step);
  __device__ void leap(int chain, int step, int index);
  __device__ void accept(int chain, int step);
  __device__ void arrive(int step, unsigned counts);
  __device__ void set_next_step_size(int step);
  __device__ void write_refined(int chain);
  __device__ bool settle();
  __device__ void refine();

  Decoder& decoder_;
  const Space& space_;
  const TrajectorySpec& spec_;
  int run_, first_;
  char* shared_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, lane_ = static_cast<int>(threadIdx.x) % 32;
};

template <class Decoder>
__device__ void Refinement<Decoder>::load(const double* draws) {
  const RunState& state = *space_.of(space_.state, run_);
  if (threadIdx.x == 0) {
    epsilon(0) = state.step_size;
    *ints(at().counts) = 0;
  }
  each_chain(warp_, [&](int chain) {
    each_dimension([&](int d) {
      const double z = real(chain) ? draws[chain * space_.latent + d] : 0;
      doubles(at().position)[point(chain, d)] = z;
      doubles(at().drawn)[point(chain, d)] = 0;  // of chains that are not there, it stays
      decoder_.set_input(chain, d, static_cast<float>(z));
    });
    if (lane_ != 0) return;
    doubles(at().constant)[chain] = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
    doubles(at().next_log_uniform)[chain] = 0;
    ints(at().next_length)[chain] = spec_.shape.leapfrog;
  });
}

// log p(x, z) of the point just evaluated
template <class Decoder>
__device__ double Refinement<Decoder>::value_here(int chain, double prior) const {
  return doubles(at().constant)[chain] + prior + decoder_.log_likelihood(chain);
}

template <class Decoder>
__device__ void Refinement<Decoder>::begin(int chain) {
  double prior = 0;
  bool finite = real(chain);
  each_dimension([&](int d) {
    const int i = point(chain, d);
    const double z = doubles(at().position)[i], slope = decoder_.gradient(chain, d) - z;
    prior += log_standard_normal(z);
    finite = finite && isfinite(slope);
    doubles(at().z)[i] = z;
    doubles(at().slope)[i] = slope;
  });
  const double value = value_here(chain, warp_sum(prior));
  finite = __all_sync(0xFFFFFFFFu, finite) && isfinite(value);
  each_dimension([&](int d) {
    const int i = point(chain, d);
    doubles(at().gradient)[i] = finite ? doubles(at().slope)[i] : 0;
    if (decoder_.rank() == 0 && real(chain))
      space_.of(space_.grad_p0, run_)[static_cast<std::size_t>(first_ + chain) * space_.latent + d] =
          doubles(at().gradient)[i];
  });
  if (lane_ != 0) return;
  doubles(at().value)[chain] = finite ? value : -infinity;
  doubles(at().acceptance)[chain] = 0;
  ints(at().proposals)[chain] = ints(at().nonfinite)[chain] = 0;
  if (decoder_.rank() != 0 || !real(chain)) return;
  space_.of(space_.alive, run_)[first_ + chain] = finite;
  space_.of(space_.log_p0, run_)[first_ + chain] = finite ? value : 0;
}

// The random numbers of a step begin to come, for `wait_for_copies` before it starts.
template <class Decoder>
__device__ void Refinement<Decoder>::fetch(int chain, int step) {
  if (step >= spec_.steps || !real(chain)) return;
  const std::size_t from = static_cast<std::size_t>(step) * space_.batch + first_ + chain;
  each_dimension([&](int d) {
    copy_async(doubles(at().drawn) + point(chain, d),
               space_.of(space_.drawn_momentum, run_) + from * space_.latent + d);
  });
  if (lane_ != 0) return;
  copy_async(doubles(at().next_log_uniform) + chain, space_.of(space_.drawn_log_uniform, run_) + from);
  copy_async(ints(at().next_length) + chain, space_.of(space_.drawn_length, run_) + from);
}

// When the numbers have come, by the warp that fetched them: before the meeting is over.
template <class Decoder>
__device__ void Refinement<Decoder>::weigh(int chain) {
  double energy = 0;
  each_dimension([&](int d) { energy = energy + 0.5 * square(doubles(at().drawn)[point(chain, d)]); });
  energy = warp_sum(energy);
  if (lane_ == 0) doubles(at().next_energy)[chain] = energy;
}

template <class Decoder>
__device__ void Refinement<Decoder>::start(int chain, int step) {
  const double eps = epsilon(step);
  each_dimension([&](int d) {
    const int i = point(chain, d);
    const double momentum = doubles(at().drawn)[i] + 0.5 * eps * doubles(at().gradient)[i];
    const double position = doubles(at().z)[i] + eps * momentum;
    doubles(at().momentum)[i] = momentum;
    doubles(at().position)[i] = position;
    decoder_.set_input(chain, d, static_cast<float>(position));
  });
  if (lane_ != 0) return;
  doubles(at().energy)[chain] = doubles(at().next_energy)[chain];
  doubles(at().log_uniform)[chain] = doubles(at().next_log_uniform)[chain];
  ints(at().length)[chain] = ints(at().next_length)[chain];
}

template <class Decoder>
__device__ void Refinement<Decoder>::leap(int chain, int step, int index) {
  const int length = ints(at().length)[chain];
  const double eps = epsilon(step);
  const bool ends = index == length, moves = index < length;
  double prior = 0, kinetic = 0;
  bool finite = true;
  each_dimension([&](int d) {
    const int i = point(chain, d);
    const double position = doubles(at().position)[i], slope = decoder_.gradient(chain, d) - position;
    const double momentum = doubles(at().momentum)[i] + (ends ? 0.5 * eps : eps) * slope;
    if (moves) {
      const double next = position + eps * momentum;
      decoder_.set_input(chain, d, static_cast<float>(next));
      doubles(at().momentum)[i] = momentum;
      doubles(at().position)[i] = next;
    } else if (ends) {
      doubles(at().slope)[i] = slope;
      prior = prior + log_standard_normal(position);
      kinetic = kinetic + 0.5 * square(momentum);
      finite = finite && isfinite(slope);
    }
  });
  if (!ends) return;
  sum_lanes<Decoder::most_dims>(prior, kinetic);
  const double value = value_here(chain, prior);
  finite = __all_sync(0xFFFFFFFFu, finite);
  if (lane_ == 0) {
    doubles(at().proposed)[chain] = finite ? value : -infinity;
    doubles(at().energy)[chain] -= kinetic;
  }
  __syncwarp();
}

template <class Decoder>
__device__ void Refinement<Decoder>::accept(int chain, int step) {
  const double proposed = doubles(at().proposed)[chain], value = doubles(at().value)[chain];
  const double log_ratio = proposed - value + doubles(at().energy)[chain];
  const Outcome outcome = decide(log_ratio, proposed, value, doubles(at().log_uniform)[chain]);
  const bool moves = outcome == Outcome::accepted, counts = outcome != Outcome::outside;
  if (lane_ == 0) {  // the last chain of the block tells the other clusters
    const unsigned mine = 1u << 16 | static_cast<unsigned>(counts) << 8 | static_cast<unsigned>(moves);
    const unsigned seen = atomicAdd(reinterpret_cast<unsigned*>(shared_ + at().counts), mine) + mine;
    if (seen >> 16 == NC) arrive(step, seen);
  }
  __syncwarp();
  each_dimension([&](int d) {
    const int i = point(chain, d);
    if (!moves) return;
    doubles(at().z)[i] = doubles(at().position)[i];
    doubles(at().gradient)[i] = doubles(at().slope)[i];
  });
  if (lane_ != 0) return;
  if (moves) doubles(at().value)[chain] = proposed;
  doubles(at().acceptance)[chain] += acceptance_of(outcome, log_ratio);
  ints(at().proposals)[chain] += counts;
  ints(at().nonfinite)[chain] += outcome == Outcome::nonfinite;
}

// Where step sizes adapt inside, all clusters of the run tell how many of their proposals were accepted …
template <class Decoder>
__device__ void Refinement<Decoder>::arrive(int step, unsigned counts) {
  *reinterpret_cast<unsigned*>(shared_ + at().counts) = 0;
  if (!adapts(step) || decoder_.rank() != 0) return;
  const unsigned long long accepted = counts & 0xFF, proposals = counts >> 8 & 0xFF;
  atomicAdd(space_.of(space_.meeting, run_) + step, (1ull << 40) + (proposals << 20) + accepted);
}
// … and wait until they know of all. One thread, while others may still read the step's own.
template <class Decoder>
__device__ void Refinement<Decoder>::set_next_step_size(int step) {
  double next = epsilon(step);
  if (adapts(step)) {
    const unsigned long long* place = space_.of(space_.meeting, run_) + step;
    const double usual_weight = 1.0 / space_.batch;  // while others are awaited
    unsigned long long seen;
    do {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(place) : "memory");
    } while (seen >> 40 < static_cast<unsigned long long>(spec_.clusters));
    const int accepted = static_cast<int>(seen & 0xFFFFF), all = static_cast<int>(seen >> 20 & 0xFFFFF);
    const double weight = all == space_.batch ? usual_weight : 1.0 / all;
    if (all > 0) next = spec_.sizes.rule.next(next, accepted * weight);
  }
  epsilon(step + 1) = next;
}

// Where the refined draw is, and the decoder's input there: 0 where the draw was lost.
template <class Decoder>
__device__ void Refinement<Decoder>::write_refined(int chain) {
  const bool lost = doubles(at().value)[chain] == -infinity, writes = decoder_.rank() == 0 && real(chain);
  const ChainArrays chains = space_.chains.of(run_);
  each_dimension([&](int d) {
    const double z = doubles(at().z)[point(chain, d)];
    const float input = lost ? 0.0f : static_cast<float>(z);
    decoder_.set_input(chain, d, input);
    if (!writes) return;
    chains.z[static_cast<std::size_t>(first_ + chain) * space_.latent + d] = z;
    chains.input[static_cast<std::size_t>(first_ + chain) * space_.ld_latent + d] = input;
  });
  if (lane_ != 0 || !writes) return;
  chains.value[first_ + chain] = doubles(at().value)[chain];
  chains.acceptance[first_ + chain] = doubles(at().acceptance)[chain];
  chains.proposals[first_ + chain] = ints(at().proposals)[chain];
  chains.nonfinite[first_ + chain] = ints(at().nonfinite)[chain];
  if (chain == 0 && first_ == 0 && spec_.adapt == Adapt::inside)
    space_.of(space_.state, run_)->step_size = epsilon(spec_.steps);
}

// Value and gradient at the draws, and all steps.
template <class Decoder>
__device__ void Refinement<Decoder>::refine() {
  const int leaps = spec_.shape.leapfrog + spec_.shape.jitter, shortest = spec_.shape.leapfrog - spec_.shape.jitter;
  const int fetching = (warp_ + warps / 2) % warps;  // the chain whose numbers a warp fetches: not the one that it moves
  for (int step = -1, index = leaps;;) {             // step −1: the draws themselves
    decoder_.template evaluate<false>(step < 0 || index >= shortest, nullptr);
    each_chain(warp_, [&](int chain) {
      if (step < 0) return begin(chain);
      leap(chain, step, index);
      if (index == leaps) accept(chain, step);
    });
    if (step < 0 || index == 1) each_chain(fetching, [&](int chain) { fetch(chain, step + 1); });
    if (index++ == leaps) {
      wait_for_copies();
      if (step + 1 < spec_.steps) each_chain(fetching, [&](int chain) { weigh(chain); });
      if (step >= 0 && threadIdx.x == 32 * warps - 1) set_next_step_size(step);  // by a warp that has no chain, if any
      if (++step == spec_.steps) break;
      __syncthreads();
      each_chain(warp_, [&](int chain) { start(chain, step); });
      index = 1;
    }
    __syncthreads();
  }
  __syncthreads();
}

// Refined draws as they are wanted; whether one was lost. For all threads, with a barrier at the end.
template <class Decoder>
__device__ bool Refinement<Decoder>::settle() {
  bool lost = false;
  each_chain(warp_, [&](int chain) {
    write_refined(chain);
    lost = lost || (real(chain) && doubles(at().value)[chain] == -infinity);
  });
  return __syncthreads_or(lost);
}

template <class Decoder>
template <bool stay>
__device__ void Refinement<Decoder>::run(const double* draws) {
  __syncthreads();
  load(draws);
  __syncwarp();
  arrive_at_meeting();
  end_meeting();  // all shared memory is set up before others write into it
  if constexpr (stay) {  // one pass answers and records, unless a draw is lost
    decoder_.template evaluate<true>(true, nullptr);
    each_chain(warp_, [&](int chain) { begin(chain); });
    __syncthreads();
  } else {
    refine();
  }
  if (settle() || !stay) decoder_.template evaluate<true>(false, doubles(at().value));
  cooperative_groups::this_cluster().sync();  // nobody leaves while others may write to it
}

#endif

}  // namespace hone::cuda
