#include <algorithm>

#include "hone/engine/cuda/register_decoder.cuh"

namespace hone::cuda {
namespace {

template <class Shape, int NT>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  const int cluster = static_cast<int>(blockIdx.x) / Shape::blocks;
  const int run = first_run + cluster / spec.clusters, first = cluster % spec.clusters * 8 * NT;
  RegisterDecoder<Shape, NT> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder, space, spec, shared, run, first);
  refinement.run();
#endif
}

template <class Shape>
TrajectoryKernel kernel_of(int chains) {
  switch (chains) {
    case 8: return trajectory<Shape, 1>;
    case 16: return trajectory<Shape, 2>;
    default: return trajectory<Shape, 4>;
  }
}

template <class Shape>
TrajectoryPlan plan_of(const DecoderShape& decoder, int chains) {
  TrajectoryPlan plan;
  plan.weights = WeightPlace::registers;
  plan.depth = decoder.net.depth;
  plan.cluster = Shape::blocks;
  plan.chains = chains;
  plan.places = chains == 8    ? RegisterPlaces<Shape, 1>().chains()
                : chains == 16 ? RegisterPlaces<Shape, 2>().chains()
                               : RegisterPlaces<Shape, 4>().chains();
  plan.bytes = plan.places.bytes;
  return plan;
}

}  // namespace

TrajectoryPlan plan_registers(const DecoderShape& decoder, int chains) {
  const Net& net = decoder.net;
  if (decoder.math != Math::tf32 || !suits_halves(net, decoder.density)) return {};
  if (TwoHiddenLayers::holds(net)) return plan_of<TwoHiddenLayers>(decoder, chains);
  if (NoHiddenLayers::holds(net)) return plan_of<NoHiddenLayers>(decoder, chains);
  return {};
}

std::size_t packed_size(const Net& net) {
  const auto size = [&]<class Shape>(Shape) {
    return Shape::holds(net) ? static_cast<std::size_t>(Shape::blocks) * Shape::fragments * threads : 0;
  };
  return std::max(size(TwoHiddenLayers()), size(NoHiddenLayers()));
}

TrajectoryKernel register_kernel(const TrajectoryPlan& plan) {
  return plan.depth == 1 ? kernel_of<NoHiddenLayers>(plan.chains) : kernel_of<TwoHiddenLayers>(plan.chains);
}

}  // namespace hone::cuda
