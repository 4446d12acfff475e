#include "hone/engine/cpu/cpu_engine.hpp"

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/given.hpp"
#include "hone/engine/cpu/cpu_run.hpp"

namespace hone {
namespace {

// The runs take turns; each has the whole team.
template <class Real>
class CpuEngine final : public Engine {
 public:
  CpuEngine(TrainConfig config, const DataSet& train, EngineOptions options, EngineInternals internals)
      : team_(options.threads), failure_(options.seeds.size()) {
    for (const std::uint64_t seed : options.seeds) {
      config.seed = seed;
      runs_.push_back(std::make_unique<CpuRun<Real>>(config, train, team_, options, internals));
    }
  }

  int runs() const override { return static_cast<int>(runs_.size()); }
  std::uint32_t iteration() const override { return iteration_; }
  double step_size(int run) const override { return at(run).step_size(); }

  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override {
    if (metrics.size() < runs_.size())
      throw InputError(detail::format("{} runs need metrics for each of them, not {}", runs_.size(), metrics.size()));
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (!failure_[run].empty()) continue;
      try {
        for (std::uint32_t i = 0; i < iterations; ++i) runs_[run]->step(metrics[run]);
      } catch (const Error& error) {
        failure_[run] = error.what();
      }
    }
    iteration_ += iterations;
  }
  const std::string& failure(int run) const override { return failure_[checked(run)]; }

  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress, int run) override {
    return at(run).evaluate(data, config, progress);
  }
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress, int run) override {
    return at(run).anneal(data, task, progress);
  }
  SimulatedData simulate(int count, int run) const override { return at(run).simulate(count); }
  TrainState save(int run) const override { return at(run).save(); }
  void restore(const TrainState& state, int run) override {
    at(run).restore(state);
    iteration_ = state.iteration;
    failure_[run].clear();
  }

 private:
  std::size_t checked(int run) const {
    if (run < 0 || run >= runs()) throw InputError(detail::format("there is no run {} among {} runs", run, runs()));
    return static_cast<std::size_t>(run);
  }
  CpuRun<Real>& at(int run) const { return *runs_[checked(run)]; }

  Team team_;
  std::vector<std::unique_ptr<CpuRun<Real>>> runs_;
  std::vector<std::string> failure_;  // one per run
  std::uint32_t iteration_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const TrainConfig& config, const DataSet& train, EngineOptions options,
                                        EngineInternals internals) {
  check(config, EngineKind::cpu);
  if (options.seeds.empty()) options.seeds = {config.seed};
  const bool replays = options.replays() || internals.observe;
  if (replays && options.seeds.size() > 1) throw InputError("only a single run can be replayed or observed");
  if (internals.ranks && replays) throw InputError("several ranks cannot replay or observe a run");
  if (internals.ranks && !given(config.objective, "objective").terms())
    throw InputError("an objective of your own sees all draws of an iteration, so it cannot train on several ranks");
  if (config.precision == Precision::float64)
    return std::make_unique<CpuEngine<double>>(config, train, std::move(options), std::move(internals));
  return std::make_unique<CpuEngine<float>>(config, train, std::move(options), std::move(internals));
}

}  // namespace hone
