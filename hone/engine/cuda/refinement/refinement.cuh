#pragma once

#include "hone/engine/cuda/device/cluster.cuh"
#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// q's draws of a cluster, (chain, D), if another kernel made them.
__device__ inline const double* draws_of(const Space& space, int run, int first) {
  return space.of(space.z0, run) + static_cast<std::size_t>(first) * space.latent;
}

// The state of a block that carries chains. `first`: the number of its first chain in the run.
class ChainBlock {
 public:
  __device__ ChainBlock(const Space& space, const RefinementSpec& spec, char* shared, int run, int first)
      : space_(space), spec_(spec), shared_(shared), run_(run), first_(first) {}
  __device__ int first() const { return first_; }

 protected:
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  template <class T>
  __device__ __forceinline__ T* shared(int place) const {
    return reinterpret_cast<T*>(shared_ + place);
  }
  // Where the tape has a chain's numbers of a layer.
  __device__ float* recorded(float* const (&arrays)[max_layers], int l, int chain) const {
    return arrays[l] + run_ * space_.stride + static_cast<std::size_t>(first_ + chain) * spec_.decoder.layer[l].ld;
  }
  __device__ int g() const { return lane_ / 4; }  // of a product's fragments
  __device__ int t() const { return lane_ % 4; }

  const Space& space_;
  const RefinementSpec& spec_;
  char* shared_;
  int run_, first_;
  int warp_ = this_warp(), lane_ = this_lane();
};

// Carries the chains of a cluster, or of each of its blocks, through a whole refinement. A block moves all chains that
// it has (blocks that share chains get the same bits), with one warp per chain or per several chains and one lane per
// dimension: that needs few barriers. The decoder is a block's part of log p(x | z):
//   NC, block_warps, rank()                  chains; warps of a block; this block's number in the cluster
//   groups                                   of a cluster, each with chains of its own; 1: its blocks share theirs
//   most_dims                                dimensions of z at most
//   keeps_first                              value and gradient at the draws are wanted in the end
//   places()                                 where the chains are kept, `most_dims` doubles from one to the next
//   set_input(chain, d, z)                   a point to evaluate at (a barrier follows)
//   evaluate<records>(wants_value, value)    all threads; `records`: writes the tape. With `value` (−∞: lost) there is
//                                            no gradient; null: none is lost, and there is one if the value is wanted
//   gradient(chain, d)                       ∇ log p(x | z), of all blocks
//   log_likelihood_part(chain, i)            the value's parts, i < 16, which add up
template <class Decoder>
class Refinement : ChainBlock {
 public:
  static constexpr int NC = Decoder::NC, warps = Decoder::block_warps;

  explicit __device__ Refinement(Decoder& decoder) : ChainBlock(decoder), decoder_(decoder) {}

  // Starts from the draws (chain, D). `stay`: makes no step. At the end all blocks of a cluster have met, and what they
  // wrote before the last pass (`stay`: the first) is visible.
  template <bool stay = false>
  __device__ void run(const double* draws) {
    __syncthreads();
    load(draws);
    __syncwarp();
    if constexpr (Decoder::groups > 1) {
      __syncthreads();
    } else {
      arrive_at_meeting();
      end_meeting();  // all shared memory is set up before others write into it
    }
    // A block that arrives here has received all that others sent so far, and waits in the last pass for what they send
    // there. So no block ends while others may write to it.
    const auto arrive = [] { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); };
    if constexpr (stay) {  // one pass is enough for the gradient and the tape, unless a draw is lost
      arrive();
      decoder_.template evaluate<true>(true, nullptr);
      each_chain(warp_, [&](int chain) { begin(chain); });
      __syncthreads();
    } else {
      refine();
    }
    const bool lost = settle();
    if constexpr (!stay) arrive();
    if (lost || !stay) decoder_.template evaluate<true>(false, doubles(at().value));
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }

  // A chain's place and value where it ends, and value and gradient where it began: if the decoder keeps_first.
  struct Chain {
    const double *z, *first_gradient;
    double value, first_value;  // −∞: lost
  };
  __device__ Chain chain(int c) const {
    return {.z = doubles(at().z) + point(c, 0),
            .first_gradient = doubles(at().first_gradient) + point(c, 0),
            .value = doubles(at().value)[c],
            .first_value = doubles(at().first_value)[c]};
  }

 private:
  __device__ int point(int chain, int d) const { return chain * Decoder::most_dims + d; }
  __device__ __forceinline__ decltype(auto) at() const { return decoder_.places(); }
  __device__ double* doubles(int place) const { return shared<double>(place); }
  __device__ int* ints(int place) const { return shared<int>(place); }
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
    for (int i = 0; i < (Decoder::most_dims + 31) / 32; ++i)
      if (const int d = here_only(lane_) + 32 * i; d < space_.latent) f(d);
  }

  // Two warps move a chain if z is long and there are enough warps. A lane has a group of `together` neighbouring
  // dimensions, and reads all of a group before it writes, so that reads do not wait for each other.
  static constexpr int movers = Decoder::most_dims > 32 && 2 * NC <= warps ? 2 : 1,
                       together = Decoder::most_dims > 32 * movers ? 2 : 1;
  static_assert(Decoder::most_dims <= 64);
  template <class F>  // f(chain, mover)
  __device__ __forceinline__ void each_moved(F f) const {
    if constexpr (movers == 1)
      each_chain(warp_, [&](int chain) { f(chain, 0); });
    else if (warp_ < movers * NC)
      f(here_only(warp_ % NC), here_only(warp_ / NC));
  }

  __device__ bool adapts(int step) const { return spec_.adapt == Adapt::inside && step < spec_.adapting; }

  __device__ void load(const double* draws) {
    const RunState& state = *space_.of(space_.state, run_);
    if (threadIdx.x == 0) {
      epsilon(0) = state.step_size;
      *ints(at().counts) = 0;
    }
    each_chain(warp_, [&](int chain) {
      each_dimension([&](int d) {
        const double z = real(chain) ? draws[chain * space_.latent + d] : 0;
        doubles(at().position)[point(chain, d)] = z;
        doubles(at().drawn)[point(chain, d)] = 0;  // it stays 0 for chains that do not exist
        decoder_.set_input(chain, d, static_cast<float>(z));
      });
      if (lane_ != 0) return;
      doubles(at().constant)[chain] = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
      doubles(at().next_log_uniform)[chain] = 0;
      ints(at().next_length)[chain] = spec_.shape.leapfrog;
    });
  }
  // The lane's share of log p(x | z) at the point just evaluated.
  __device__ __forceinline__ double value_here(int chain) const {
    if (lane_ >= 16) return 0;
    return decoder_.log_likelihood_part(chain, lane_) + (lane_ == 0 ? doubles(at().constant)[chain] : 0);
  }
  __device__ void begin(int chain) {
    double value = value_here(chain);
    bool finite = real(chain);
    each_dimension([&](int d) {
      const int i = point(chain, d);
      const double z = doubles(at().position)[i], gradient = decoder_.gradient(chain, d) - z;
      value += log_standard_normal(z);
      finite = finite && isfinite(gradient);
      doubles(at().z)[i] = z;
      doubles(at().proposed_gradient)[i] = gradient;
    });
    value = warp_sum(value);
    finite = __all_sync(0xFFFFFFFFu, finite) && isfinite(value);
    each_dimension([&](int d) {
      const int i = point(chain, d);
      doubles(at().gradient)[i] = finite ? doubles(at().proposed_gradient)[i] : 0;
      if constexpr (Decoder::keeps_first) doubles(at().first_gradient)[i] = doubles(at().gradient)[i];
      if (decoder_.rank() == 0 && real(chain))
        space_.of(space_.grad_p0, run_)[static_cast<std::size_t>(first_ + chain) * space_.latent + d] =
            doubles(at().gradient)[i];
    });
    if (lane_ != 0) return;
    doubles(at().value)[chain] = finite ? value : -infinity;
    if constexpr (Decoder::keeps_first) doubles(at().first_value)[chain] = doubles(at().value)[chain];
    doubles(at().acceptance)[chain] = 0;
    ints(at().proposals)[chain] = ints(at().nonfinite)[chain] = 0;
    if (decoder_.rank() != 0 || !real(chain)) return;
    space_.of(space_.alive, run_)[first_ + chain] = finite;
    space_.of(space_.log_p0, run_)[first_ + chain] = finite ? value : 0;
  }
  // Starts to copy the random numbers of a step: `wait_for_copies` must follow.
  __device__ void fetch(int chain, int step) {
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
  // The fresh momenta's energy, by the warp that fetched them, after `wait_for_copies`.
  __device__ void weigh(int chain) {
    double energy = 0;
    each_dimension([&](int d) { energy = energy + kinetic_energy(doubles(at().drawn)[point(chain, d)]); });
    energy = warp_sum(energy);
    if (lane_ == 0) doubles(at().next_energy)[chain] = energy;
  }
  // Moves the lane's group of a chain by leap_of(d).
  template <class F>
  __device__ __forceinline__ void move(int chain, int mover, F leap_of) {
    const int first = together * here_only(lane_) + 32 * mover;
    if (first >= space_.latent) return;
    Leap leaps[together];
    for (int k = 0; k < together; ++k) leaps[k] = leap_of(first + k);
    for (int k = 0; k < together; ++k) {
      const int d = first + k, i = point(chain, d);
      if (d >= space_.latent) break;
      decoder_.set_input(chain, d, static_cast<float>(leaps[k].position));
      doubles(at().momentum)[i] = leaps[k].momentum;
      doubles(at().position)[i] = leaps[k].position;
    }
  }
  __device__ void start(int chain, int mover, int step) {
    const double eps = epsilon(step);
    move(chain, mover, [&](int d) {
      const int i = point(chain, d);
      return Leap(doubles(at().z)[i], doubles(at().drawn)[i], doubles(at().gradient)[i], 0.5 * eps, eps);
    });
    if (lane_ != 0 || mover != 0) return;
    doubles(at().energy)[chain] = doubles(at().next_energy)[chain];
    doubles(at().log_uniform)[chain] = doubles(at().next_log_uniform)[chain];
    ints(at().length)[chain] = ints(at().next_length)[chain];
  }
  __device__ void leap(int chain, int mover, int step, int index) {
    if (index >= ints(at().length)[chain]) return;
    const double eps = epsilon(step);
    move(chain, mover, [&](int d) {
      const int i = point(chain, d);
      const double position = doubles(at().position)[i], gradient = decoder_.gradient(chain, d) - position;
      return Leap(position, doubles(at().momentum)[i], gradient, eps, eps);
    });
  }
  // The last half kick, and what the Metropolis step needs.
  __device__ void end_trajectory(int chain, int step) {
    const double half = 0.5 * epsilon(step);
    double value = value_here(chain), kinetic = 0;
    bool finite = true;
    each_dimension([&](int d) {
      const int i = point(chain, d);
      const double position = doubles(at().position)[i], gradient = decoder_.gradient(chain, d) - position;
      value = value + log_standard_normal(position);
      kinetic = kinetic + kinetic_energy(kicked(doubles(at().momentum)[i], half, gradient));
      finite = finite && isfinite(gradient);
      doubles(at().proposed_gradient)[i] = gradient;
    });
    sum_lanes<Decoder::most_dims>(value, kinetic);
    finite = __all_sync(0xFFFFFFFFu, finite);
    if (lane_ == 0) {
      doubles(at().proposed)[chain] = finite ? value : -infinity;
      doubles(at().energy)[chain] -= kinetic;
    }
    __syncwarp();
  }
  __device__ void accept(int chain, int step) {
    const double proposed = doubles(at().proposed)[chain], value = doubles(at().value)[chain];
    const Decision decision(proposed, value, doubles(at().energy)[chain], doubles(at().log_uniform)[chain]);
    const bool moves = decision.moves(), counts = decision.counts();
    if (lane_ == 0) {  // the last chain of the block tells the other clusters
      const unsigned mine = 1u << 16 | static_cast<unsigned>(counts) << 8 | static_cast<unsigned>(moves);
      const unsigned before = NC == 1 ? 0 : atomicAdd(shared<unsigned>(at().counts), mine);
      if (before + mine >> 16 == NC) arrive(step, before + mine);
    }
    __syncwarp();
    each_dimension([&](int d) {
      const int i = point(chain, d);
      if (!moves) return;
      doubles(at().z)[i] = doubles(at().position)[i];
      doubles(at().gradient)[i] = doubles(at().proposed_gradient)[i];
    });
    if (lane_ != 0) return;
    if (moves) doubles(at().value)[chain] = proposed;
    doubles(at().acceptance)[chain] += decision.acceptance();
    ints(at().proposals)[chain] += counts;
    ints(at().nonfinite)[chain] += decision.outcome == Outcome::nonfinite;
  }
  // If step sizes adapt inside a refinement, each cluster of the run reports how many proposals it accepted …
  __device__ void arrive(int step, unsigned counts) {
    *ints(at().counts) = 0;
    if (!adapts(step) || decoder_.rank() != 0) return;
    const unsigned long long accepted = counts & 0xFF, proposals = counts >> 8 & 0xFF;
    atomicAdd(space_.of(space_.meeting, run_) + step, (1ull << 40) + (proposals << 20) + accepted);
  }
  // … and waits for the reports of all. One thread, while others may still read the current step size.
  __device__ void set_next_step_size(int step) {
    double next = epsilon(step);
    if (adapts(step)) {
      const unsigned long long* place = space_.of(space_.meeting, run_) + step;
      const double usual_weight = 1.0 / space_.batch;  // divided while it waits
      unsigned long long seen;
      do {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(place) : "memory");
      } while (seen >> 40 < static_cast<unsigned long long>(Decoder::groups * spec_.clusters));
      const int accepted = static_cast<int>(seen & 0xFFFFF), all = static_cast<int>(seen >> 20 & 0xFFFFF);
      const double weight = all == space_.batch ? usual_weight : 1.0 / all;
      if (all > 0) next = spec_.sizes.rule.next(next, accepted * weight);
    }
    epsilon(step + 1) = next;
  }
  // The refined draw, and the decoder's input there: 0 if the draw was lost.
  __device__ void write_refined(int chain) {
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
  // Writes the refined draws; returns whether one was lost. All threads; ends with a barrier.
  __device__ bool settle() {
    bool lost = false;
    each_chain(warp_, [&](int chain) {
      write_refined(chain);
      lost = lost || (real(chain) && doubles(at().value)[chain] == -infinity);
    });
    return __syncthreads_or(lost);
  }
  // Value and gradient at the draws, and all steps.
  __device__ void refine() {
    const int leaps = spec_.shape.leapfrog + spec_.shape.jitter, shortest = spec_.shape.leapfrog - spec_.shape.jitter;
    const int fetching = (warp_ + warps / 2) % warps;  // the chain whose numbers a warp fetches, not the one it moves
    for (int step = -1, index = leaps;;) {             // step −1: the draws themselves
      decoder_.template evaluate<false>(step < 0 || index >= shortest, nullptr);
      if (step >= 0 && index < leaps) each_moved([&](int chain, int mover) { leap(chain, mover, step, index); });
      if (index >= shortest)
        each_chain(warp_, [&](int chain) {
          if (step < 0) return begin(chain);
          if (index == ints(at().length)[chain]) end_trajectory(chain, step);
          if (index == leaps) accept(chain, step);
        });
      if (step < 0 || index == 1) each_chain(fetching, [&](int chain) { fetch(chain, step + 1); });
      if (index++ == leaps) {
        wait_for_copies();
        if (step + 1 < spec_.steps) each_chain(fetching, [&](int chain) { weigh(chain); });
        if (step >= 0 && threadIdx.x == 32 * warps - 1)
          set_next_step_size(step);  // by a warp that has no chain, if any
        if (++step == spec_.steps) break;
        __syncthreads();
        each_moved([&](int chain, int mover) { start(chain, mover, step); });
        index = 1;
      }
      __syncthreads();
    }
    __syncthreads();
  }

  Decoder& decoder_;
};

}  // namespace hone::cuda
