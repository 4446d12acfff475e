#include <algorithm>

#include "hone/engine/cuda/streamed_decoder.cuh"

namespace hone::cuda {
namespace {

using WithHiddenLayers = StreamedShape<true>;
using WithoutHiddenLayers = StreamedShape<false>;

template <class Shape>
__global__ void __launch_bounds__(32 * Shape::warps, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  wait_for_previous();
  const int block = static_cast<int>(blockIdx.x), run = first_run + block / spec.clusters,
            first = block % spec.clusters * Shape::chains;
  StreamedDecoder<Shape> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder, space, spec, shared, run, first);
  decoder.load();
  refinement.run(draws_of(space, run, first));
#endif
}

template <class Shape>
__global__ void pack(Space space, Net net, int lines) {
  const int run = static_cast<int>(blockIdx.y);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= lines) return;
  const float* parameters = space.of(space.parameters, run);
  uint4* to = space.of(space.packed, run) + i;
  constexpr int first = tile_lines * Shape::first_tiles, below = tile_lines * Shape::below;
  if (i < first) {
    *to = packed_line(parameters, net.layer[0], Shape::in_steps, i);
    return;
  }
  if (i < below) {
    *to = packed_line(parameters, net.layer[1], hidden_steps, i - first);
    return;
  }
  const Layer& layer = net.layer[Shape::hidden ? 2 : 0];
  const int pair = (i - below) / Shape::pair_lines, line = (i - below) % Shape::pair_lines;
  constexpr int of_pair = Shape::last_steps * tile_lines;
  if (line < of_pair) {
    *to = packed_line(parameters, layer, Shape::last_steps, pair * of_pair + line);
    return;
  }
  const auto bias = [&](int k) {
    return __float_as_uint(bias_of(parameters, layer, 16 * pair + 4 * (line - of_pair) + k, never));
  };
  *to = make_uint4(bias(0), bias(1), bias(2), bias(3));
}

template <class Shape>
TrajectoryPlan plan_of(const Net& net) {
  TrajectoryPlan plan;
  plan.weights = WeightPlace::streamed;
  plan.depth = net.depth;
  plan.cluster = 1;
  plan.chains = Shape::chains;
  plan.places = StreamedPlaces<Shape>().chains();
  plan.bytes = plan.places.bytes;
  return plan;
}

}  // namespace

TrajectoryPlan plan_streamed(const DecoderShape& decoder) {
  const Net& net = decoder.net;
  if (!suits_halves(net, decoder.density, decoder.math) || !decoder.binary) return {};
  if (WithHiddenLayers::holds(net)) return plan_of<WithHiddenLayers>(net);
  if (WithoutHiddenLayers::holds(net)) return plan_of<WithoutHiddenLayers>(net);
  return {};
}

std::size_t streamed_size(const Net& net) {
  const auto size = [&]<class Shape>(Shape) {
    return Shape::holds(net) ? static_cast<std::size_t>(Shape::lines(net)) : 0;
  };
  return std::max(size(WithHiddenLayers()), size(WithoutHiddenLayers()));
}

void launch_pack_streamed(const Space& space, const Net& net, int runs, cudaStream_t stream) {
  const int lines = static_cast<int>(streamed_size(net));
  const auto kernel = net.depth == 1 ? pack<WithoutHiddenLayers> : pack<WithHiddenLayers>;
  kernel<<<dim3(ceil_div(lines, 256), runs), 256, 0, stream>>>(space, net, lines);
  check(cudaGetLastError(), "packing weights");
}

TrajectoryKernel streamed_kernel(const TrajectoryPlan& plan) {
  return plan.depth == 1 ? trajectory<WithoutHiddenLayers> : trajectory<WithHiddenLayers>;
}

}  // namespace hone::cuda
