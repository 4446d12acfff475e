#include "hone/engine/cuda/refinement/registers/register_refinement.cuh"

#include <type_traits>

#include "hone/engine/cuda/encoder/encoder_block.cuh"
#include "hone/engine/cuda/refinement/registers/one_layer_decoder.cuh"
#include "hone/engine/cuda/refinement/registers/register_decoder.cuh"

namespace hone::cuda {
namespace {

// This block's number, read anew each time: it needs no register until then.
[[maybe_unused]] __device__ __forceinline__ int this_block() {
  int block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  return block;
}

// With 8 · NT chains per cluster.
template <class Shape, int NT>
using BlockPlaces = std::conditional_t<Shape::hidden, RegisterPlaces<NT>, OneLayerPlaces<NT>>;
template <class Shape, int NT>
using DecoderOf = std::conditional_t<Shape::hidden, RegisterDecoder<NT>, OneLayerDecoder<NT>>;

// What the objective needs of a datum: q's draw, and what became of its chain.
template <class Chain>
__device__ __forceinline__ Datum datum_of(const DrawnDatum& q, const Chain& chain) {
  const bool alive = chain.first_value != -infinity;
  return {.mean = q.mean,
          .sd = q.sd,
          .noise = q.noise,
          .raw_sd = q.raw_sd,
          .zt = chain.z,
          .grad_p0 = chain.first_gradient,
          .alive = alive,
          .log_p0 = alive ? chain.first_value : 0,
          .value = alive ? chain.value : 0,
          .baseline = {q.baseline[0], q.baseline[1]}};
}

template <class Shape, int NT, bool stay>
__global__ void __launch_bounds__(threads, 1)
    refine(const __grid_constant__ Space space, const __grid_constant__ RefinementSpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  const int cluster = static_cast<int>(blockIdx.x) / Shape::blocks;
  const int run = first_run + cluster / spec.clusters, first = cluster % spec.clusters * 8 * NT;
  DecoderOf<Shape, NT> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder);
  const Surroundings& around = spec.around;
  const auto encodes = [&] { return NT == 1 && around.there; };
  static_assert(Shape::blocks == EncoderSplit::blocks);
  // In a loop of many steps the compiler would lack the registers. Without hidden layers, in the paper's shape, all
  // fragments have a place to wait.
  constexpr bool has_rest = stay && Shape::hidden;
  const auto encoder = [&](int block) {  // it keeps nothing in registers meanwhile
    const int of_cluster = block / Shape::blocks;
    return EncoderBlock(space, around.encoder, reinterpret_cast<float*>(shared + around.begin), block % Shape::blocks,
                        of_cluster % spec.clusters * EncoderSplit::rows, first_run + of_cluster / spec.clusters);
  };
  auto* draws = reinterpret_cast<double*>(shared + around.draws);
  if (encodes()) {
    const auto before = encoder(this_block());
    before.set_up();
    wait_for_previous();
    const auto begun = before.begin_encode(around.encode);
    decoder.set_up();
    before.note_baselines(around.objective, draws);
    before.encode(around.encode, begun, draws, [&](auto when) {
      if constexpr (when == 0)  // large: started earlier, it would delay the encoder's loads
        begin_load(decoder, before.box(EncoderSplit::stage_box), shared + around.stage, around.staged);
      else if constexpr (has_rest)
        load_rest(decoder, around.staged);
    });
    load_staged<has_rest>(decoder, before.box(EncoderSplit::stage_box), shared + around.stage, around.staged);
    before.begin_ascend(around.ascend);  // into the memory that the encoder's loads have left
  } else {
    wait_for_previous();
    decoder.set_up();
    load(decoder);
  }
  refinement.template run<stay>(encodes() ? draws + (decoder.first() - first) * space.latent
                                          : draws_of(space, run, decoder.first()));
  if (encodes()) {
    const auto after = encoder(this_block());
    after.ascend(around.ascend, around.objective, [&](int column) -> Datum {
      return datum_of(after.own(draws), refinement.chain(column - decoder.first()));
    });
  }
#endif
}

template <class Shape>
RefinementPlan plan_of(const DecoderShape& decoder, int chains) {
  const bool few = chains == 8;
  return {.kind = PathKind::registers,
          .kernel = !few              ? refine<Shape, 2, false>
                    : decoder.refines ? refine<Shape, 1, false>
                                      : refine<Shape, 1, true>,
          .depth = decoder.net.depth,
          .cluster = Shape::blocks,
          .chains = chains,
          .threads = threads,
          .bytes = few ? BlockPlaces<Shape, 1>().chains.bytes() : BlockPlaces<Shape, 2>().chains.bytes(),
          .packed = Shape::packed_blocks * Shape::fragments * threads,
          .own = Shape::own};
}

}  // namespace

std::optional<RefinementPlan> plan_registers(const DecoderShape& decoder, int chains) {
  if (TwoHiddenLayers::holds(decoder.net)) return plan_of<TwoHiddenLayers>(decoder, chains);
  if (NoHiddenLayers::holds(decoder.net)) return plan_of<NoHiddenLayers>(decoder, chains);
  return {};
}

}  // namespace hone::cuda
