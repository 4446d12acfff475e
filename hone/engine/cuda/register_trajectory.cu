#include <algorithm>
#include <type_traits>

#include "hone/engine/cuda/encoder.cuh"
#include "hone/engine/cuda/one_layer_decoder.cuh"
#include "hone/engine/cuda/register_decoder.cuh"

namespace hone::cuda {
namespace {

// This block's number, asked for anew each time: it needs no register until then.
[[maybe_unused]] __device__ __forceinline__ int this_block() {
  int block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  return block;
}

// Of a decoder's shape, with 8 · NT chains a cluster.
template <class Shape, int NT>
using PlacesOf = std::conditional_t<Shape::hidden, RegisterPlaces<Shape, NT>, OneLayerPlaces<NT>>;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <class Shape, int NT>
using DecoderOf = std::conditional_t<Shape::hidden, RegisterDecoder<Shape, NT>, OneLayerDecoder<NT>>;
#endif

template <class Shape, int NT, bool stay>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  const int cluster = static_cast<int>(blockIdx.x) / Shape::blocks;
  const int run = first_run + cluster / spec.clusters, first = cluster % spec.clusters * 8 * NT;
  DecoderOf<Shape, NT> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder, space, spec, shared, run, decoder.first());
  if constexpr (NT == 1) {
    static_assert(Shape::blocks == EncoderSplit::blocks);
    const Surroundings& around = spec.around;
    const auto encoder = [&](int block) {  // it keeps nothing in registers meanwhile
      const int of_cluster = block / Shape::blocks;
      return EncoderBlock<Math::tf32>(space, around.encoder, reinterpret_cast<float*>(shared + around.begin),
                                      block % Shape::blocks, of_cluster % spec.clusters * EncoderSplit::rows,
                                      first_run + of_cluster / spec.clusters);
    };
    auto* draws = reinterpret_cast<double*>(shared + around.draws);
    if (around.there) {
      const auto before = encoder(this_block());
      before.set_up();
      wait_for_previous();
      const auto begun = before.begin_encode(around.encode);
      decoder.set_up();
      before.note_baselines(around.objective, draws);
      before.encode(around.encode, begun, draws, [&](auto when) {
        if constexpr (when == 0)  // there is much of it: before, it would stand in the way
          decoder.begin_load(before.box(EncoderSplit::stage_box), shared + around.stage, around.staged);
        else if constexpr (stay)  // in a loop of many steps the compiler would lack the registers
          decoder.load_rest(around.staged);
      });
      decoder.template load_staged<stay>(before.box(EncoderSplit::stage_box), shared + around.stage, around.staged);
      before.begin_ascend(around.ascend);  // where what the encoder needed was
    } else {
      wait_for_previous();
      decoder.set_up();
      decoder.load();
    }
    refinement.template run<stay>(around.there ? draws + (decoder.first() - first) * space.latent
                                               : draws_of(space, run, decoder.first()));
    if (around.there) {
      const auto after = encoder(this_block());
      after.template ascend<false>(around.ascend, around.objective, [&](int column) -> Datum {
        const DrawnDatum q = after.own(draws);
        const auto chain = refinement.chain(column - decoder.first());
        const bool alive = chain.first_value != -infinity;
        return {q.mean,
                q.sd,
                q.noise,
                q.raw_sd,
                chain.z,
                chain.first_gradient,
                alive,
                alive ? chain.first_value : 0,
                alive ? chain.value : 0,
                {q.baseline[0], q.baseline[1]}};
      });
    }
  } else {
    wait_for_previous();
    decoder.set_up();
    decoder.load();
    refinement.run(draws_of(space, run, decoder.first()));
  }
#endif
}

template <class Shape>
TrajectoryKernel kernel_of(const TrajectoryPlan& plan) {
  switch (plan.chains) {
    case 8:
      return plan.refines ? trajectory<Shape, 1, false> : trajectory<Shape, 1, true>;
    case 16:
      return trajectory<Shape, 2, false>;
    default:
      return trajectory<Shape, 4, false>;
  }
}

template <class Shape>
TrajectoryPlan plan_of(const DecoderShape& decoder, int chains) {
  TrajectoryPlan plan;
  plan.weights = WeightPlace::registers;
  plan.depth = decoder.net.depth;
  plan.cluster = Shape::blocks;
  plan.chains = chains;
  plan.refines = decoder.refines;
  plan.own = Shape::own;
  plan.places = chains == 8    ? PlacesOf<Shape, 1>().chains()
                : chains == 16 ? PlacesOf<Shape, 2>().chains()
                               : PlacesOf<Shape, 4>().chains();
  plan.bytes = plan.places.bytes;
  return plan;
}

}  // namespace

TrajectoryPlan plan_registers(const DecoderShape& decoder, int chains) {
  const Net& net = decoder.net;
  if (!suits_halves(net, decoder.density, decoder.math)) return {};
  if (TwoHiddenLayers::holds(net)) return plan_of<TwoHiddenLayers>(decoder, chains);
  if (NoHiddenLayers::holds(net)) return plan_of<NoHiddenLayers>(decoder, chains);
  return {};
}

std::size_t packed_size(const Net& net) {
  const auto size = [&]<class Shape>(Shape) {
    return Shape::holds(net) ? static_cast<std::size_t>(Shape::packed_blocks) * Shape::fragments * threads : 0;
  };
  return std::max(size(TwoHiddenLayers()), size(NoHiddenLayers()));
}

TrajectoryKernel register_kernel(const TrajectoryPlan& plan) {
  return plan.depth == 1 ? kernel_of<NoHiddenLayers>(plan) : kernel_of<TwoHiddenLayers>(plan);
}

}  // namespace hone::cuda
