#include "hone/engine/engines.hpp"

#include "hone/base/error.hpp"

namespace hone {

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
  if (chosen_engine(kind, config) == EngineKind::cuda) return make_cuda_engine(config, train);
  return make_cpu_engine(config, train, std::move(options));
}

}  // namespace hone
