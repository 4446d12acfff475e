#include "hone/engine/engines.hpp"

#include "hone/base/error.hpp"
#include "hone/base/given.hpp"
#include "hone/engine/cpu/cpu_engine.hpp"
#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/engine/whole_runs.hpp"

namespace hone {

CudaSupport cuda_support() { return find_cuda(); }

EngineKind chosen_engine(EngineKind kind, const TrainConfig& config) {
  if (kind != EngineKind::automatic) return kind;
  if (!cuda_support().missing.empty()) return EngineKind::cpu;
  try {
    check(config, EngineKind::cuda);
  } catch (const KeyError&) {
    return EngineKind::cpu;
  }
  return EngineKind::cuda;
}

std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options) {
  return make_engine(kind, config, train, std::move(options), {});
}

std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options, EngineInternals internals) {
  const bool replays = options.replays() || internals.observe;
  if (internals.ranks && options.seeds.size() > 1 && !replays)
    return make_whole_runs(options.seeds, config.refine.step_size, *internals.ranks,
                           [&, threads = options.threads](std::vector<std::uint64_t> seeds) {
                             return make_engine(kind, config, train, {.seeds = std::move(seeds), .threads = threads});
                           });
  if (kind == EngineKind::automatic && (replays || internals.ranks)) kind = EngineKind::cpu;
  if (chosen_engine(kind, config) == EngineKind::cpu)
    return make_cpu_engine(config, train, std::move(options), std::move(internals));
  if (replays) throw InputError("replaying and observing a run needs the cpu engine");
  TrainConfig resolved = config;  // on the cpu the Refiner asks the kernel
  resolved.refine.acceptance = config.refine.aim(given(config.kernel, "kernel"));
  return make_cuda_engine(resolved, train, options.seeds, internals.ranks);
}

int side_by_side(EngineKind kind, int runs) { return kind == EngineKind::cuda ? runs : 1; }

}  // namespace hone
