#include "hone/engine/cuda/refinement/streamed/streamed_refinement.cuh"

#include "hone/engine/cuda/refinement/streamed/streamed_decoder.cuh"

namespace hone::cuda {
namespace {

using WithHiddenLayers = StreamedShape<true>;
using WithoutHiddenLayers = StreamedShape<false>;

template <class Shape>
__global__ void __launch_bounds__(32 * Shape::warps, 1)
    refine(const __grid_constant__ Space space, const __grid_constant__ RefinementSpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  wait_for_previous();
  const int block = static_cast<int>(blockIdx.x), run = first_run + block / spec.clusters,
            first = block % spec.clusters * Shape::chains;
  StreamedDecoder<Shape> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder);
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
RefinementPlan plan_of(const Net& net) {
  return {.kind = PathKind::streamed,
          .kernel = refine<Shape>,
          .depth = net.depth,
          .cluster = 1,
          .chains = Shape::chains,
          .threads = 32 * Shape::warps,
          .bytes = StreamedPlaces<Shape>().chains.bytes(),
          .packed = Shape::lines(net)};
}

}  // namespace

std::optional<RefinementPlan> plan_streamed(const DecoderShape& decoder) {
  if (WithHiddenLayers::holds(decoder.net)) return plan_of<WithHiddenLayers>(decoder.net);
  if (WithoutHiddenLayers::holds(decoder.net)) return plan_of<WithoutHiddenLayers>(decoder.net);
  return {};
}

void launch_pack_streamed(const Space& space, const Net& net, const RefinementPlan& plan, int runs,
                          cudaStream_t stream) {
  const auto kernel = net.depth == 1 ? pack<WithoutHiddenLayers> : pack<WithHiddenLayers>;
  launch(kernel, threads_for(plan.packed, runs), stream, "packing weights", space, net, plan.packed);
}

}  // namespace hone::cuda
