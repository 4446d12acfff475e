#include "hone/engine/engines.hpp"

#include "hone/base/error.hpp"

namespace hone {
namespace {

// One engine a run, which take turns.
class CpuGroup final : public EngineGroup {
 public:
  CpuGroup(TrainConfig config, const DataSet& train, const std::vector<std::uint64_t>& seeds, int threads)
      : failure_(seeds.size()) {
    for (const std::uint64_t seed : seeds) {
      config.seed = seed;
      engines_.push_back(make_cpu_engine(config, train, {.threads = threads}));
    }
  }

  std::string device() const override { return engines_.front()->device(); }
  std::uint32_t iteration() const override { return iteration_; }
  double step_size(int run) const override { return engines_[run]->step_size(); }
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override {
    for (std::size_t run = 0; run < engines_.size(); ++run) {
      if (!failure_[run].empty()) continue;
      try {
        engines_[run]->train(iterations, metrics[run]);
      } catch (const Error& error) {
        failure_[run] = error.what();
      }
    }
    iteration_ += iterations;
  }
  const std::string& failure(int run) const override { return failure_[run]; }
  TrainState save(int run) const override { return engines_[run]->save(); }
  void restore(int run, const TrainState& state) override {
    engines_[run]->restore(state);
    iteration_ = state.iteration;
    failure_[run].clear();
  }

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::string> failure_;
  std::uint32_t iteration_ = 0;
};

}  // namespace

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

int side_by_side(EngineKind kind, int runs) { return kind == EngineKind::cuda ? runs : 1; }

std::unique_ptr<EngineGroup> make_engine_group(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                               const std::vector<std::uint64_t>& seeds, int threads) {
  if (seeds.empty()) throw InputError("an engine was asked for no run at all");
  if (kind == EngineKind::cuda) return make_cuda_group(config, train, seeds);
  return std::make_unique<CpuGroup>(config, train, seeds, threads);
}

}  // namespace hone
