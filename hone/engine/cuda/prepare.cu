#include "hone/engine/cuda/register_weights.cuh"
#include "hone/engine/cuda/trajectory.cuh"

namespace hone::cuda {
namespace {

// A block's share of the minibatch: one datum.
__device__ void gather(const Space& space, const Preparation& p, int run, int column) {
  RunState& state = *space.of(space.state, run);
  const DataView& data = p.data;
  const std::uint32_t iteration = state.next;
  const std::size_t row = static_cast<std::size_t>(iteration - state.chunk_first) * space.batch;
  const int datum = space.of(space.indices, run)[row + column];
  float* x = space.of(space.x, run) + static_cast<std::size_t>(column) * space.ld_pixels;
  for (int i = threadIdx.x; i < data.pixels; i += threads)
    x[i] = data.bits
               ? static_cast<float>(data.bits[static_cast<std::size_t>(datum) * data.words + i / 64] >> (i % 64) & 1)
               : data.values[static_cast<std::size_t>(datum) * data.pixels + i];
  if (threadIdx.x == 0) {
    space.of(space.datum, run)[column] = datum;
    space.of(space.constant, run)[column] = data.constant ? data.constant[datum] : 0;
  }
  if (column != 0) return;
  for (int step = threadIdx.x; step < space.steps; step += threads) space.of(space.meeting, run)[step] = 0;
  if (threadIdx.x == 0) {
    state.iteration = iteration;
    state.rate_factor = decay_factor(p.rates.decay, p.rates.every, iteration);
  } else if (threadIdx.x == 32) {  // another warp: powers take long
    const AdamCorrection correction(iteration);
    state.adam[0] = correction.first;
    state.adam[1] = correction.second;
  }
}

// A warp's share of the random numbers: of one datum, the noise of q's draw …
__device__ void draw_noise(const Space& space, const Preparation& p, int run, int column) {
  const std::uint32_t iteration = space.of(space.state, run)->next;
  double* noise = space.of(space.noise, run) + static_cast<std::size_t>(column) * space.latent;
  for (int pair = static_cast<int>(threadIdx.x) % 32; 2 * pair < space.latent; pair += 32) {
    const auto normal = random_pair(p.seed[run], {Purpose::draw, iteration, static_cast<std::uint32_t>(column), 0},
                                    static_cast<std::uint32_t>(pair), true);
    noise[2 * pair] = normal.first;
    if (2 * pair + 1 < space.latent) noise[2 * pair + 1] = normal.second;
  }
}
// … and of a step.
__device__ void draw_step(const Space& space, const Preparation& p, int run, int step, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto datum = static_cast<std::uint32_t>(column), number = static_cast<std::uint32_t>(step);
  const std::uint32_t iteration = space.of(space.state, run)->next;
  const std::uint64_t seed = p.seed[run];
  const std::size_t place = static_cast<std::size_t>(step) * space.batch + column;
  double* momentum = space.of(space.drawn_momentum, run) + place * space.latent;
  const int pairs = (space.latent + 1) / 2;
  for (int task = lane; task < pairs + 2; task += 32) {
    if (task < pairs) {
      const auto normal =
          random_pair(seed, {Purpose::momentum, iteration, datum, number}, static_cast<std::uint32_t>(task), true);
      momentum[2 * task] = normal.first;
      if (2 * task + 1 < space.latent) momentum[2 * task + 1] = normal.second;
    } else if (task == pairs) {
      space.of(space.drawn_log_uniform, run)[place] =
          log(random_pair(seed, {Purpose::accept, iteration, datum, number}, 0, false).first);
    } else {
      space.of(space.drawn_length, run)[place] = trajectory_length(p.shape, seed, iteration, datum, number);
    }
  }
}

struct NoWeights {  // where a decoder's weights are not packed
  static constexpr int blocks = 0, fragments = 1;
};

// Three tasks side by side, since none fills the device and a launch takes as long as they do.
template <class Shape>
__global__ void __launch_bounds__(threads)
    prepare(const __grid_constant__ Space space, const __grid_constant__ Preparation p) {
  const int run = static_cast<int>(blockIdx.y), warp = static_cast<int>(threadIdx.x) / 32;
  int block = static_cast<int>(blockIdx.x);
  if (block < space.batch) {
    gather(space, p, run, block);
    return;
  }
  block -= space.batch;
  const int draws = (p.steps + 1) * space.batch, drawing = ceil_div(draws, warps);
  if (block < drawing) {
    const int task = block * warps + warp, step = task / space.batch - 1, column = task % space.batch;
    if (step < 0)
      draw_noise(space, p, run, column);
    else if (task < draws)
      draw_step(space, p, run, step, column);
    return;
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Shape::blocks > 0) {  // one block a block of the refinement and place
    block -= drawing;
    const RegisterWeights<Shape> weights(p.decoder, space.of(space.parameters, run), block / Shape::fragments);
    reinterpret_cast<Fragment*>(space.of(space.packed, run))[block * threads + static_cast<int>(threadIdx.x)] =
        weights(block % Shape::fragments);
  }
#endif
}

template <class Shape>
void launch(const Space& space, const Preparation& p, int runs, cudaStream_t stream) {
  const int blocks = space.batch + ceil_div((p.steps + 1) * space.batch, warps) + Shape::blocks * Shape::fragments;
  prepare<Shape><<<dim3(blocks, runs), threads, 0, stream>>>(space, p);
}

}  // namespace

void launch_prepare(const Space& space, const Preparation& p, int runs, cudaStream_t stream) {
  if (!p.packs)
    launch<NoWeights>(space, p, runs, stream);
  else if (p.decoder.depth == 1)
    launch<NoHiddenLayers>(space, p, runs, stream);
  else
    launch<TwoHiddenLayers>(space, p, runs, stream);
  check(cudaGetLastError(), "preparing an iteration");
}

}  // namespace hone::cuda
