#pragma once

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/trajectory.cuh"

namespace hone::cuda {

// Places in a block's shared memory, one after the other.
class Places {
 public:
  explicit __host__ __device__ constexpr Places(int begin = 0) : size_(begin) {}
  template <class T>
  __host__ __device__ constexpr int take(int count) {  // its first byte
    const int at = (size_ + 15) / 16 * 16;
    size_ = at + count * static_cast<int>(sizeof(T));
    return at;
  }
  __host__ __device__ constexpr int bytes() const { return (size_ + 15) / 16 * 16; }

 private:
  int size_;
};

// Where the chains of a cluster keep their state: points are (chain, D).
struct ChainPlaces {
  int z, gradient, position, momentum, slope, drawn;
  int value, proposed, energy, acceptance, constant, log_uniform, next_log_uniform, epsilon;
  int length, next_length, proposals, nonfinite, counts;
  int bytes;

  __host__ __device__ constexpr ChainPlaces(int begin, int chains, int latent) : ChainPlaces() {
    Places places(begin);
    for (int* p : {&z, &gradient, &position, &momentum, &slope, &drawn}) *p = places.take<double>(chains * latent);
    for (int* p :
         {&value, &proposed, &energy, &acceptance, &constant, &log_uniform, &next_log_uniform})
      *p = places.take<double>(chains);
    epsilon = places.take<double>(1);
    for (int* p : {&length, &next_length, &proposals, &nonfinite}) *p = places.take<int>(chains);
    counts = places.take<unsigned>(1);
    bytes = places.bytes();
  }

 private:
  __host__ __device__ constexpr ChainPlaces()
      : z(0), gradient(0), position(0), momentum(0), slope(0), drawn(0), value(0), proposed(0), energy(0),
        acceptance(0), constant(0), log_uniform(0), next_log_uniform(0), epsilon(0), length(0), next_length(0),
        proposals(0), nonfinite(0), counts(0), bytes(0) {}
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// The chains of a cluster through a whole refinement. Every block of the cluster moves all of them, with the same bits,
// one warp a chain and one lane a dimension: within a chain no barrier is needed. The decoder is a block's part of
// log p(x | z):
//   NC, latent(), rank()                     chains and dimensions; this block's number in the cluster
//   load(), set_input(chain, d, z)           weights into place; a point to evaluate at (a barrier follows)
//   evaluate<records>(wants_value, value)    all threads; `records`: writes the tape instead, no answer
//   gradient(chain, d), log_likelihood(chain)   the answer, of all blocks
template <class Decoder>
class Refinement {
 public:
  static constexpr int NC = Decoder::NC;

  __device__ Refinement(Decoder& decoder, const Space& space, const TrajectorySpec& spec, char* shared, int begin,
                        int run, int first)
      : decoder_(decoder), space_(space), spec_(spec), run_(run), first_(first), shared_(shared),
        at_(begin, NC, space.latent) {}

  __device__ void run();

 private:
  __device__ bool real(int chain) const { return first_ + chain < space_.batch; }
  __device__ int point(int chain, int d) const { return chain * space_.latent + d; }
  __device__ double* doubles(int place) const { return reinterpret_cast<double*>(shared_ + place); }
  __device__ int* ints(int place) const { return reinterpret_cast<int*>(shared_ + place); }
  __device__ double& epsilon() const { return *doubles(at_.epsilon); }

  __device__ void load();
  __device__ double value_here(int chain, double prior) const;
  __device__ void begin(int chain);
  __device__ void draw(int chain, std::uint32_t step);
  __device__ void start(int chain);
  __device__ void leap(int chain, int index);
  __device__ void accept(int chain, int step);
  __device__ void meet(int step, int accepted, int proposals);
  __device__ void write_refined(int chain);

  Decoder& decoder_;
  const Space& space_;
  const TrajectorySpec& spec_;
  int run_, first_;
  char* shared_;
  ChainPlaces at_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, lane_ = static_cast<int>(threadIdx.x) % 32;
  std::uint64_t seed_ = 0;
  std::uint32_t iteration_ = 0;
};

template <class Decoder>
__device__ void Refinement<Decoder>::load() {
  const RunState& state = *space_.of(space_.state, run_);
  iteration_ = state.iteration;
  seed_ = spec_.seed[run_];
  if (threadIdx.x == 0) {
    epsilon() = state.step_size;
    *ints(at_.counts) = 0;
  }
  const double* z0 = space_.of(space_.z0, run_);
  for (int chain = warp_; chain < NC; chain += warps) {
    for (int d = lane_; d < space_.latent; d += 32) {
      const double z = real(chain) ? z0[static_cast<std::size_t>(first_ + chain) * space_.latent + d] : 0;
      doubles(at_.position)[point(chain, d)] = z;
      decoder_.set_input(chain, d, static_cast<float>(z));
    }
    if (lane_ == 0) doubles(at_.constant)[chain] = real(chain) ? space_.of(space_.constant, run_)[first_ + chain] : 0;
  }
}

// log p(x, z) of the point just evaluated; `prior`: a lane's part of log p(z)
template <class Decoder>
__device__ double Refinement<Decoder>::value_here(int chain, double prior) const {
  return doubles(at_.constant)[chain] + warp_sum(prior) + decoder_.log_likelihood(chain);
}

__device__ __forceinline__ double log_prior(double z) { return -0.5 * (square(z) + log_two_pi); }

template <class Decoder>
__device__ void Refinement<Decoder>::begin(int chain) {
  double prior = 0;
  bool finite = real(chain);
  for (int d = lane_; d < space_.latent; d += 32) {
    const int i = point(chain, d);
    const double z = doubles(at_.position)[i], slope = decoder_.gradient(chain, d) - z;
    prior += log_prior(z);
    finite = finite && isfinite(slope);
    doubles(at_.z)[i] = z;
    doubles(at_.slope)[i] = slope;
  }
  const double value = value_here(chain, prior);
  finite = __all_sync(0xFFFFFFFFu, finite) && isfinite(value);
  for (int d = lane_; d < space_.latent; d += 32) {
    const int i = point(chain, d);
    doubles(at_.gradient)[i] = finite ? doubles(at_.slope)[i] : 0;
    if (decoder_.rank() == 0 && real(chain))
      space_.of(space_.grad_p0, run_)[static_cast<std::size_t>(first_ + chain) * space_.latent + d] =
          doubles(at_.gradient)[i];
  }
  if (lane_ != 0) return;
  doubles(at_.value)[chain] = finite ? value : -infinity;
  doubles(at_.acceptance)[chain] = 0;
  ints(at_.proposals)[chain] = ints(at_.nonfinite)[chain] = 0;
  if (decoder_.rank() != 0 || !real(chain)) return;
  space_.of(space_.alive, run_)[first_ + chain] = finite;
  space_.of(space_.log_p0, run_)[first_ + chain] = finite ? value : 0;
}

// The random numbers of a step, which wait until it starts.
template <class Decoder>
__device__ void Refinement<Decoder>::draw(int chain, std::uint32_t step) {
  const auto datum = static_cast<std::uint32_t>(first_ + chain);
  const int pairs = (space_.latent + 1) / 2;
  for (int task = lane_; task < pairs + 2; task += 32) {
    if (task < pairs) {
      const auto normal =
          random_pair(seed_, {Purpose::momentum, iteration_, datum, step}, static_cast<std::uint32_t>(task), true);
      doubles(at_.drawn)[point(chain, 2 * task)] = normal.first;
      if (2 * task + 1 < space_.latent) doubles(at_.drawn)[point(chain, 2 * task + 1)] = normal.second;
    } else if (task == pairs) {
      doubles(at_.next_log_uniform)[chain] =
          log(random_pair(seed_, {Purpose::accept, iteration_, datum, step}, 0, false).first);
    } else {
      ints(at_.next_length)[chain] = trajectory_length(spec_.shape, seed_, iteration_, datum, step);
    }
  }
}

template <class Decoder>
__device__ void Refinement<Decoder>::start(int chain) {
  const double eps = epsilon();
  double energy = 0;
  for (int d = lane_; d < space_.latent; d += 32) {
    const int i = point(chain, d);
    double momentum = doubles(at_.drawn)[i];
    energy += 0.5 * square(momentum);
    momentum += 0.5 * eps * doubles(at_.gradient)[i];
    const double position = doubles(at_.z)[i] + eps * momentum;
    doubles(at_.momentum)[i] = momentum;
    doubles(at_.position)[i] = position;
    decoder_.set_input(chain, d, static_cast<float>(position));
  }
  energy = warp_sum(energy);
  if (lane_ != 0) return;
  doubles(at_.energy)[chain] = energy;
  doubles(at_.log_uniform)[chain] = doubles(at_.next_log_uniform)[chain];
  ints(at_.length)[chain] = ints(at_.next_length)[chain];
}

template <class Decoder>
__device__ void Refinement<Decoder>::leap(int chain, int index) {
  const double eps = epsilon();
  const int length = ints(at_.length)[chain];
  if (index > length) return;
  const bool ends = index == length;
  double prior = 0;
  bool finite = true;
  for (int d = lane_; d < space_.latent; d += 32) {
    const int i = point(chain, d);
    const double position = doubles(at_.position)[i], slope = decoder_.gradient(chain, d) - position;
    const double momentum = doubles(at_.momentum)[i] + (ends ? 0.5 : 1) * eps * slope;
    doubles(at_.momentum)[i] = momentum;
    if (ends) {
      doubles(at_.slope)[i] = slope;
      prior += log_prior(position);
      finite = finite && isfinite(slope);
    } else {
      doubles(at_.position)[i] = position + eps * momentum;
      decoder_.set_input(chain, d, static_cast<float>(position + eps * momentum));
    }
  }
  if (!ends) return;
  const double value = value_here(chain, prior);
  finite = __all_sync(0xFFFFFFFFu, finite);
  if (lane_ == 0) doubles(at_.proposed)[chain] = finite ? value : -infinity;
  __syncwarp();
}

template <class Decoder>
__device__ void Refinement<Decoder>::accept(int chain, int step) {
  double kinetic = 0;
  for (int d = lane_; d < space_.latent; d += 32) kinetic += 0.5 * square(doubles(at_.momentum)[point(chain, d)]);
  kinetic = warp_sum(kinetic);
  const double proposed = doubles(at_.proposed)[chain], value = doubles(at_.value)[chain];
  const Decision decision = decide(proposed - value + doubles(at_.energy)[chain] - kinetic, proposed, value,
                                   doubles(at_.log_uniform)[chain]);
  const bool moves = decision.outcome == Outcome::accepted, counts = decision.outcome != Outcome::outside;
  __syncwarp();
  for (int d = lane_; moves && d < space_.latent; d += 32) {
    const int i = point(chain, d);
    doubles(at_.z)[i] = doubles(at_.position)[i];
    doubles(at_.gradient)[i] = doubles(at_.slope)[i];
  }
  if (lane_ != 0) return;
  if (moves) doubles(at_.value)[chain] = proposed;
  doubles(at_.acceptance)[chain] += decision.acceptance;
  ints(at_.proposals)[chain] += counts;
  ints(at_.nonfinite)[chain] += decision.outcome == Outcome::nonfinite;
  // the last chain of the block meets those of the other clusters
  const unsigned mine = 1u << 16 | static_cast<unsigned>(counts) << 8 | static_cast<unsigned>(moves);
  auto* all = reinterpret_cast<unsigned*>(shared_ + at_.counts);
  const unsigned seen = atomicAdd(all, mine) + mine;
  if (seen >> 16 < NC) return;
  *all = 0;
  if (spec_.adapt == Adapt::inside && step < spec_.adapting)
    meet(step, static_cast<int>(seen & 0xFF), static_cast<int>(seen >> 8 & 0xFF));
}

// All clusters of the run tell how many of their proposals were accepted, and wait until they know of all.
template <class Decoder>
__device__ void Refinement<Decoder>::meet(int step, int accepted, int proposals) {
  unsigned long long* place = space_.of(space_.meeting, run_) + step;
  if (decoder_.rank() == 0)
    atomicAdd(place, (1ull << 40) + (static_cast<unsigned long long>(proposals) << 20) +
                         static_cast<unsigned long long>(accepted));
  unsigned long long seen;
  do {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(place) : "memory");
  } while (seen >> 40 < static_cast<unsigned long long>(spec_.clusters));
  const auto all_accepted = static_cast<double>(seen & 0xFFFFF), all = static_cast<double>(seen >> 20 & 0xFFFFF);
  if (all > 0) epsilon() = spec_.sizes.rule.next(epsilon(), all_accepted / all);
}

// Where the refined draw is, and the decoder's input there: 0 where the draw was lost.
template <class Decoder>
__device__ void Refinement<Decoder>::write_refined(int chain) {
  const bool lost = doubles(at_.value)[chain] == -infinity, writes = decoder_.rank() == 0 && real(chain);
  const ChainArrays chains = space_.chains.of(run_);
  for (int d = lane_; d < space_.latent; d += 32) {
    const double z = doubles(at_.z)[point(chain, d)];
    const float input = lost ? 0.0f : static_cast<float>(z);
    decoder_.set_input(chain, d, input);
    if (!writes) continue;
    chains.z[static_cast<std::size_t>(first_ + chain) * space_.latent + d] = z;
    chains.input[static_cast<std::size_t>(first_ + chain) * space_.ld_latent + d] = input;
  }
  if (lane_ != 0 || !writes) return;
  chains.value[first_ + chain] = doubles(at_.value)[chain];
  chains.acceptance[first_ + chain] = doubles(at_.acceptance)[chain];
  chains.proposals[first_ + chain] = ints(at_.proposals)[chain];
  chains.nonfinite[first_ + chain] = ints(at_.nonfinite)[chain];
  if (chain == 0 && first_ == 0 && spec_.adapt == Adapt::inside) space_.of(space_.state, run_)->step_size = epsilon();
}

template <class Decoder>
__device__ void Refinement<Decoder>::run() {
  decoder_.load();
  __syncthreads();
  load();
  cooperative_groups::this_cluster().sync();  // all shared memory is set up before others write into it
  const int leaps = spec_.shape.leapfrog + spec_.shape.jitter, shortest = spec_.shape.leapfrog - spec_.shape.jitter;
  const int drawing = (warp_ + warps / 2) % warps;  // the chain whose numbers a warp draws: not the one that it moves
  for (int step = -1, index = leaps;;) {            // step −1: the draws themselves
    decoder_.template evaluate<false>(step < 0 || index >= shortest, nullptr);
    for (int chain = warp_; chain < NC; chain += warps) {
      if (step < 0) {
        begin(chain);
        continue;
      }
      leap(chain, index);
      if (index == leaps) accept(chain, step);
    }
    if (index++ == leaps) {
      if (step + 1 == spec_.steps) break;
      ++step;
      for (int chain = drawing; chain < NC; chain += warps) draw(chain, static_cast<std::uint32_t>(step));
      __syncthreads();
      for (int chain = warp_; chain < NC; chain += warps) start(chain);
      index = 1;
    }
    __syncthreads();
  }
  __syncthreads();
  for (int chain = warp_; chain < NC; chain += warps) write_refined(chain);
  __syncthreads();
  decoder_.template evaluate<true>(false, doubles(at_.value));
  cooperative_groups::this_cluster().sync();  // nobody leaves while others may write to it
}

#endif

}  // namespace hone::cuda
