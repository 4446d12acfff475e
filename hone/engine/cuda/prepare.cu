#include "hone/engine/cuda/first_layer.cuh"
#include "hone/engine/cuda/register_weights.cuh"

namespace hone::cuda {
namespace {

// A block's share of the minibatch: one datum.
__device__ void gather(const Space& space, const Preparation& p, int run, int column) {
  const DataView& data = p.data;
  const int datum = next_minibatch(space, run)[column];
  float* x = space.of(space.x, run) + static_cast<std::size_t>(column) * space.ld_pixels;
#pragma unroll 1
  for (int i = threadIdx.x; i < data.pixels; i += threads)
    x[i] = data.bits
               ? static_cast<float>(data.bits[static_cast<std::size_t>(datum) * data.words + i / 64] >> (i % 64) & 1)
               : data.values[static_cast<std::size_t>(datum) * data.pixels + i];
  if (threadIdx.x != 0) return;
  space.of(space.datum, run)[column] = datum;
  space.of(space.constant, run)[column] = data.constant ? data.constant[datum] : 0;
}

// The next iteration becomes the one under way.
__device__ void begin_iteration(const Space& space, const Preparation& p, int run) {
  RunState& state = *space.of(space.state, run);
  const std::uint32_t iteration = state.next;
#pragma unroll 1
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

// A warp's share of the random numbers: of one datum and step, or the noise of q's draw (step −1). Written so that the
// code of a random number is there once: fetching it takes longer than running it.
__device__ void draw(const Space& space, const Preparation& p, int run, int step, int column) {
  const std::size_t place = static_cast<std::size_t>(max(step, 0)) * space.batch + column;
  double* normals = space.of(step < 0 ? space.noise : space.drawn_momentum, run) + place * space.latent;
  const int pairs = (space.latent + 1) / 2;
  Stream stream{Purpose::draw, space.of(space.state, run)->next, static_cast<std::uint32_t>(column),
                static_cast<std::uint32_t>(max(step, 0))};
#pragma unroll 1
  for (int task = static_cast<int>(threadIdx.x) % 32; task < (step < 0 ? pairs : pairs + 2); task += 32) {
    const bool normal = task < pairs;
    if (step >= 0) stream.purpose = normal ? Purpose::momentum : task == pairs ? Purpose::accept : Purpose::leapfrog;
    const auto pair = random_pair(p.seed[run], stream, normal ? static_cast<std::uint32_t>(task) : 0, normal);
    if (normal) {
      normals[2 * task] = pair.first;
      if (2 * task + 1 < space.latent) normals[2 * task + 1] = pair.second;
    } else if (task == pairs) {
      space.of(space.drawn_log_uniform, run)[place] = log(pair.first);
    } else {
      space.of(space.drawn_length, run)[place] =
          p.shape.jitter == 0 ? p.shape.leapfrog : jittered(p.shape.leapfrog, p.shape.jitter, pair.first);
    }
  }
}

struct NoWeights {  // where a decoder's weights are not packed
  static constexpr int packed_blocks = 0, fragments = 1;
};

// Tasks side by side, since none fills the device and a launch takes as long as they do. The longest begin first.
template <class Shape, Math math>
__global__ void __launch_bounds__(threads, 3)
    prepare(const __grid_constant__ Space space, const __grid_constant__ Preparation p) {
  extern __shared__ __align__(16) char shared[];
  wait_for_previous();
  const int run = static_cast<int>(blockIdx.y), warp = static_cast<int>(threadIdx.x) / 32;
  int block = static_cast<int>(blockIdx.x);
  if (block < p.first.blocks) return first_layer<math>(space, p.data, p.encoder, p.first, shared, run, block);
  block -= p.first.blocks;
  if (block < space.batch) {
    gather(space, p, run, block);
#pragma unroll 1
    for (int step = warp - 1; step < p.steps; step += warps) draw(space, p, run, step, block);
    return;
  }
  block -= space.batch;
  if (block == 0) return begin_iteration(space, p, run);
#if __CUDA_ARCH__ >= 900
  if constexpr (Shape::packed_blocks > 0) {  // one block a place and part of the packed weights
    block -= 1;
    const RegisterWeights<Shape> weights(p.decoder, space.of(space.parameters, run), block / Shape::fragments);
    reinterpret_cast<Fragment*>(space.of(space.packed, run))[block * threads + static_cast<int>(threadIdx.x)] =
        weights(block % Shape::fragments);
  }
#endif
}

template <class Shape, Math math>
void launch(const Space& space, const Preparation& p, int runs, cudaStream_t stream) {
  const int blocks = p.first.blocks + space.batch + 1 + Shape::packed_blocks * Shape::fragments;
  const Launch launch(dim3(blocks, runs), 1, threads, p.first.bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, prepare<Shape, math>, space, p), "preparing an iteration");
}

}  // namespace

void launch_prepare(const Space& space, const Preparation& p, int runs, cudaStream_t stream) {
  if (p.math == Math::fp32)  // whose weights are never packed
    launch<NoWeights, Math::fp32>(space, p, runs, stream);
  else if (!p.packs)
    launch<NoWeights, Math::tf32>(space, p, runs, stream);
  else if (p.decoder.depth == 1)
    launch<NoHiddenLayers, Math::tf32>(space, p, runs, stream);
  else
    launch<TwoHiddenLayers, Math::tf32>(space, p, runs, stream);
}

}  // namespace hone::cuda
