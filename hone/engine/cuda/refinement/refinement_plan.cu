#include "hone/engine/cuda/refinement/refinement_plan.cuh"

#include <algorithm>

#include "hone/engine/cuda/encoder/datum.cuh"
#include "hone/engine/cuda/refinement/registers/register_refinement.cuh"
#include "hone/engine/cuda/refinement/streamed/streamed_refinement.cuh"

namespace hone::cuda {
namespace {

// Bytes of shared memory that a block of a cluster may have; 0 where `has_clusters` says no.
int cluster_shared_memory() { return has_clusters() ? device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) : 0; }

// Asks for all shared memory: runs of different shapes share the kernels.
bool allows(const RefinementPlan& plan, int most) {
  if (plan.bytes > most) return false;
  const cudaError_t status = cudaFuncSetAttribute(plan.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

}  // namespace

int resident_clusters(const RefinementPlan& plan) {
  const Launch launch(plan.cluster, plan.cluster, plan.threads, plan.bytes, nullptr, false);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, plan.kernel, &launch.config) == cudaSuccess) return clusters;
  cudaGetLastError();
  return 0;
}

std::vector<RefinementPlan> plan_refinements(const DecoderShape& decoder, int batch) {
  std::vector<RefinementPlan> plans;
  const int most = cluster_shared_memory();
  if (most == 0 || !suits_halves(decoder.net, decoder.density, decoder.math)) return plans;
  for (const auto& plan : {plan_registers(decoder, 8), plan_registers(decoder, 16), plan_streamed(decoder)})
    if (plan && allows(*plan, most) && resident_clusters(*plan) >= ceil_div(batch, plan->chains))
      plans.push_back(*plan);
  return plans;
}

Surroundings plan_surroundings(const RefinementPlan& plan, const Net& encoder, int latent) {
  if (plan.kind != PathKind::registers || plan.chains != EncoderSplit::rows) return {};
  if (encoder.depth != EncoderSplit::depth) return {};
  Surroundings around{.there = true, .encode = EncodeShape(encoder, latent), .ascend = AscendShape(encoder, latent)};
  const long long most = cluster_shared_memory(), draws = 8LL * EncoderSplit::rows * latent + DrawnDatum::bytes(latent);
  long long end = plan.bytes + std::max(around.encode.bytes, around.ascend.bytes);
  if (end + draws > most) return {};
  around.begin = plan.bytes;
  around.stage = static_cast<int>(plan.bytes + around.encode.bytes);
  const int staged_bytes = 16 * plan.threads;
  around.staged = static_cast<int>(std::min<long long>(plan.own, (most - draws - around.stage) / staged_bytes));
  end = std::max<long long>(end, around.stage + around.staged * staged_bytes);
  around.draws = static_cast<int>(end);
  around.bytes = static_cast<int>(end + draws);
  RefinementPlan whole = plan;
  whole.bytes = around.bytes;  // as many clusters must be resident as the plan says
  return resident_clusters(whole) == resident_clusters(plan) ? around : Surroundings();
}

void launch_refinement(const Space& space, const RefinementSpec& spec, int first_run, int runs, cudaStream_t stream) {
  const Launch launch(runs * spec.clusters * spec.plan.cluster, spec.plan.cluster, spec.plan.threads,
                      spec.around.there ? spec.around.bytes : spec.plan.bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, spec.plan.kernel, space, spec, first_run), "starting a refinement");
}

}  // namespace hone::cuda
