#include "hone/engine/cuda/trajectory.cuh"

#include <algorithm>

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/datum.cuh"

namespace hone::cuda {
namespace {

TrajectoryKernel kernel_of(const TrajectoryPlan& plan, Math math) {
  switch (plan.weights) {
    case WeightPlace::registers:
      return register_kernel(plan);
    case WeightPlace::streamed:
      return streamed_kernel(plan);
    case WeightPlace::cache:
      return team_kernel(plan, math);
    default:
      return shared_kernel(plan, math);
  }
}
int threads_of(const TrajectoryPlan& plan) {
  return plan.weights == WeightPlace::streamed ? 32 * streamed_warps : threads;
}

int blocks_of(const TrajectoryPlan& plan) {  // that carry the same chains, or are launched together
  return plan.weights == WeightPlace::cache ? plan.team.blocks : plan.cluster;
}

bool allows(const TrajectoryPlan& plan, Math math, int most) {
  const TrajectoryKernel kernel = kernel_of(plan, math);
  const bool fits = plan.bytes <= most &&
                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most) == cudaSuccess &&
                    (plan.cluster <= 8 ||
                     cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess);
  if (!fits) cudaGetLastError();
  return fits;
}

}  // namespace

bool has_clusters() {
  TrajectoryPlan any;
  any.weights = WeightPlace::registers;
  any.chains = 8;
  cudaFuncAttributes code;
  check(cudaFuncGetAttributes(&code, kernel_of(any, Math::tf32)), "asking for the code of a kernel");
  return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 && code.ptxVersion >= 90;
}

int cluster_shared_memory() { return has_clusters() ? device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) : 0; }

int resident_clusters(const TrajectoryPlan& plan, Math math) {
  const int clusters = resident_clusters(kernel_of(plan, math), plan.cluster, threads_of(plan), plan.bytes);
  return clusters * plan.cluster / blocks_of(plan);
}

std::optional<TrajectoryPlan> plan_trajectory(const DecoderShape& decoder, int batch, int chains, int blocks) {
  const int most = cluster_shared_memory();
  if (most == 0 || decoder.net.depth > trajectory_layers) return {};
  std::vector<TrajectoryPlan> plans;
  if (blocks == 1) {
    plans = {plan_streamed(decoder)};
  } else {
    plans = {plan_registers(decoder, chains)};
    for (const int cluster : {8, 16, 4, 2}) plans.push_back(plan_shared(decoder, chains, cluster));
  }
  for (const TrajectoryPlan& plan : plans) {
    if (plan.bytes == 0 || plan.chains != chains || (blocks > 0 && plan.cluster != blocks)) continue;
    if (!allows(plan, decoder.math, most)) continue;
    if (resident_clusters(plan, decoder.math) >= ceil_div(batch, chains)) return plan;
  }
  return {};
}

std::optional<TrajectoryPlan> plan_teams(const DecoderShape& decoder, int batch, int runs, int chains, int blocks) {
  const int most = cluster_shared_memory(), teams = ceil_div(batch, chains);
  if (most == 0) return {};
  if (blocks == 0) {
    int widest = 1;
    for (int l = 0; l < decoder.net.depth; ++l) widest = std::max(widest, ceil_div(decoder.net.layer[l].outputs, 16));
    blocks = std::clamp(device_attribute(cudaDevAttrMultiProcessorCount) / (teams * runs), 1, widest);
  }
  const TrajectoryPlan plan = plan_team(decoder, chains, blocks, most);
  if (plan.bytes == 0 || !allows(plan, decoder.math, most) || resident_clusters(plan, decoder.math) < teams) return {};
  return plan;
}

Surroundings plan_surroundings(const TrajectoryPlan& plan, const EncoderSpec& encoder, const ObjectiveSpec& objective,
                               int latent) {
  if (plan.weights != WeightPlace::registers || plan.chains != EncoderSplit::rows) return {};
  Surroundings around{true, encoder, objective, EncodeShape(encoder.net, latent), AscendShape(encoder.net, latent)};
  const long long most = cluster_shared_memory(), draws = 8LL * EncoderSplit::rows * latent + DrawnDatum::bytes(latent);
  long long end = plan.bytes + std::max(around.encode.bytes, around.ascend.bytes);
  if (end + draws > most) return {};
  around.begin = plan.bytes;
  around.stage = static_cast<int>(plan.bytes + around.encode.bytes);
  constexpr int staged_bytes = 16 * threads;
  around.staged = static_cast<int>(std::min<long long>(plan.own, (most - draws - around.stage) / staged_bytes));
  end = std::max<long long>(end, around.stage + around.staged * staged_bytes);
  around.draws = static_cast<int>(end);
  around.bytes = static_cast<int>(end + draws);
  TrajectoryPlan whole = plan;
  whole.bytes = around.bytes;  // as many clusters must be resident as the plan says
  return resident_clusters(whole, Math::tf32) == resident_clusters(plan, Math::tf32) ? around : Surroundings();
}

void launch_trajectory(const Space& space, const TrajectorySpec& spec, Math math, int first_run, int runs,
                       cudaStream_t stream) {
  // launched ahead, two blocks with weights in shared memory might share a multiprocessor
  const bool ahead = spec.plan.weights != WeightPlace::shared;
  const Launch launch(runs * spec.clusters * blocks_of(spec.plan), spec.plan.cluster, threads_of(spec.plan),
                      spec.around.there ? spec.around.bytes : spec.plan.bytes, stream, ahead);
  check(cudaLaunchKernelEx(&launch.config, kernel_of(spec.plan, math), space, spec, first_run),
        "starting a refinement");
}

}  // namespace hone::cuda
