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
  const int block = static_cast<int>(blockIdx.x), run = first_run + block / spec.clusters,
            first = block % spec.clusters * Shape::chains;
  StreamedDecoder<Shape> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder, space, spec, shared, run, first);
  refinement.run();
#endif
}

template <class Shape>
__global__ void pack(Space space, Net net, int lines) {
  const int run = static_cast<int>(blockIdx.y);
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), layer = 0;
  if (i >= lines) return;
  uint4* to = space.of(space.packed, run) + i;
  if constexpr (Shape::hidden) {
    constexpr int first = tile_lines * Shape::first_tiles, below = tile_lines * Shape::below;
    layer = (i >= first) + (i >= below);
    i -= layer == 0 ? 0 : layer == 1 ? first : below;
  }
  *to = packed_line(space.of(space.parameters, run), net.layer[layer], layer == 0 ? Shape::in_steps : hidden_steps, i);
}

template <class Shape>
TrajectoryPlan plan_of(const DecoderShape& decoder) {
  TrajectoryPlan plan;
  plan.weights = WeightPlace::streamed;
  plan.depth = decoder.net.depth;
  plan.cluster = 1;
  plan.chains = Shape::chains;
  plan.places = StreamedPlaces<Shape>().chains();
  plan.bytes = plan.places.bytes;
  return plan;
}

}  // namespace

TrajectoryPlan plan_streamed(const DecoderShape& decoder) {
  const Net& net = decoder.net;
  const bool usual = decoder.math == Math::tf32 && decoder.density == Density::bernoulli &&
                     (net.depth == 1 || net.activation == Activation::relu);
  if (usual && WithHiddenLayers::holds(net)) return plan_of<WithHiddenLayers>(decoder);
  if (usual && WithoutHiddenLayers::holds(net)) return plan_of<WithoutHiddenLayers>(decoder);
  return {};
}

std::size_t streamed_size(const Net& net) {
  const auto size = [&]<class Shape>(Shape) {
    return Shape::holds(net) ? static_cast<std::size_t>(tile_lines) * Shape::tiles(net) : 0;
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
