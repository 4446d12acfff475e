#include "hone/engine/cuda/shared_decoder.cuh"

namespace hone::cuda {
namespace {

constexpr int scratch_floats = 8192;

// A stride of at least `least` that is 4 more than a multiple of 8 (fragments of single words), or 8 more than one of
// 32 (fragments of pairs): a warp's fragment touches every bank once.
int odd_stride(int least) { return round_up(least + 4, 8) - 4; }
int pair_stride(int least) { return round_up(least > 8 ? least - 8 : 0, 32) + 8; }

SharedPlan layout(const Net& net, int chains, int cluster) {
  SharedPlan plan;
  plan.cluster = cluster;
  const int last = net.depth - 1, latent = net.inputs();
  const auto width = [&](int l) { return l == 0 ? latent : net.layer[l - 1].outputs; };
  // outputs of a layer that a block holds: all of the first hidden one's
  const auto held = [&](int l) { return l == 0 && last > 0 ? width(1) : plan.slice[l]; };
  Places places;
  const auto floats = [&](int count) { return places.take<float>(count) / 4; };
  for (int l = 0; l <= last; ++l) {
    plan.slice[l] = ceil_div(width(l + 1), cluster);
    plan.slice_reciprocal[l] = static_cast<unsigned>(((1ull << 32) + plan.slice[l] - 1) / plan.slice[l]);
    plan.weight_stride[l] = odd_stride(held(l));
    plan.weight[l] = floats(round_up(width(l), 8) * plan.weight_stride[l]);
  }
  int received = 0;
  for (int l = 0; l <= last; ++l) {
    plan.bias[l] = floats(held(l));
    if (l == last) break;
    received = std::max(received, plan.slice[l]);
    plan.value_stride[l] = pair_stride(round_up(width(l + 1), 8));
    plan.value[l] = floats(chains * plan.value_stride[l]);
  }
  plan.z_stride = pair_stride(round_up(latent, 8));
  plan.z = floats(chains * plan.z_stride);
  plan.x_stride = plan.slice[last] + 1;
  plan.x = floats(chains * plan.x_stride);
  plan.residual_stride = odd_stride(round_up(plan.slice[last], 8));
  plan.residual = floats(chains * plan.residual_stride);
  plan.log_p = floats(chains * plan.x_stride);
  for (int l = 1; l < last; ++l) {
    plan.slice_delta_stride[l] = odd_stride(round_up(plan.slice[l], 8));
    plan.slice_delta[l] = floats(chains * plan.slice_delta_stride[l]);
  }
  plan.delta_stride = odd_stride(round_up(last > 0 ? width(1) : 1, 8));
  plan.delta = floats(chains * plan.delta_stride);
  plan.received_size = round_up(cluster * received * chains, 4);
  plan.received = floats(2 * plan.received_size);
  plan.answer = floats(2 * cluster * latent * chains);
  int scratch = 0;
  const auto shared_out = [&](int rows, int k) {
    ProductPlan p{tiles_of(rows), 0};
    if (p.tiles <= warps / 2) {
      p.parts = std::min(std::min(warps / p.tiles, steps_of(k)), scratch_floats / (16 * p.tiles * chains));
      p.parts = std::max(1, p.parts);
    }
    scratch = std::max(scratch, p.parts * 16 * p.tiles * chains);
    return p;
  };
  for (int l = 0; l <= last; ++l) {
    plan.forward[l] = shared_out(held(l), width(l));
    plan.backward[l] = shared_out(width(l), held(l));
  }
  plan.boxes = floats(2 * 5);
  plan.schedule = floats(2 * net.depth * warps * static_cast<int>(sizeof(WarpShare) / sizeof(float)));
  plan.scratch = floats(scratch);
  plan.partial_values = floats(2 * chains);
  plan.received_values = floats(2 * 2 * cluster * chains);
  plan.bytes = places.bytes();
  for (int l = 0; l <= last; ++l) {  // fragments of the last rows read beyond the weights
    const int rows = 16 * tiles_of(width(l)), cols = 16 * tiles_of(held(l));
    plan.bytes = std::max(plan.bytes, round_up(4 * (plan.weight[l] + rows * plan.weight_stride[l] + cols + 8), 16));
  }
  return plan;
}

template <int depth, int NT, Math math>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  wait_for_previous();
  const int cluster = static_cast<int>(blockIdx.x) / spec.plan.cluster;
  const int run = first_run + cluster / spec.clusters, first = cluster % spec.clusters * 8 * NT;
  SharedDecoder<depth, NT, math> decoder(space, spec, shared, run, first);
  Refinement refinement(decoder, space, spec, shared, run, first);
  decoder.load();
  refinement.run(draws_of(space, run, first));
#endif
}

template <int depth, Math math>
TrajectoryKernel kernel_of(int chains) {
  switch (chains) {
    case 8:
      return trajectory<depth, 1, math>;
    case 16:
      return trajectory<depth, 2, math>;
    default:
      return trajectory<depth, 4, math>;
  }
}
template <Math math>
TrajectoryKernel kernel_of(int depth, int chains) {
  switch (depth) {
    case 1:
      return kernel_of<1, math>(chains);
    case 2:
      return kernel_of<2, math>(chains);
    default:
      return kernel_of<3, math>(chains);
  }
}

}  // namespace

TrajectoryPlan plan_shared(const DecoderShape& decoder, int chains, int blocks) {
  TrajectoryPlan plan;
  plan.depth = decoder.net.depth;
  plan.cluster = blocks;
  plan.chains = chains;
  plan.shared = layout(decoder.net, chains, blocks);
  plan.places = ChainPlaces(plan.shared.bytes, chains, decoder.net.inputs());
  plan.bytes = plan.places.bytes;
  return plan;
}

TrajectoryKernel shared_kernel(const TrajectoryPlan& plan, Math math) {
  return math == Math::tf32 ? kernel_of<Math::tf32>(plan.depth, plan.chains)
                            : kernel_of<Math::fp32>(plan.depth, plan.chains);
}

}  // namespace hone::cuda
