#include "hone/engine/cuda/cuda_engine.hpp"

#include "hone/engine/cuda/runs.cuh"

namespace hone {
namespace {

std::string described(const cuda::Runs& runs) { return cuda_support().devices.front().name + ", " + runs.path(); }

class CudaEngine final : public Engine {
 public:
  CudaEngine(const TrainConfig& config, const DataSet& train) : runs_(config, train, {config.seed}) {}

  std::string device() const override { return described(runs_); }
  std::uint32_t iteration() const override { return runs_.iteration(); }
  double step_size() const override { return runs_.step_size(0); }
  void train(std::uint32_t iterations, TrainMetrics& metrics) override {
    runs_.train(iterations, {&metrics, 1});
    if (!runs_.failure(0).empty()) throw Error(runs_.failure(0));
  }
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress) override {
    return runs_.evaluate(0, data, config, progress);
  }
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress) override {
    return runs_.anneal(0, data, task, progress);
  }
  SimulatedData simulate(int count) const override { return runs_.simulate(0, count); }
  TrainState save() const override { return runs_.save(0); }
  void restore(const TrainState& state) override { runs_.restore(0, state); }

 private:
  cuda::Runs runs_;
};

class CudaGroup final : public EngineGroup {
 public:
  CudaGroup(const TrainConfig& config, const DataSet& train, const std::vector<std::uint64_t>& seeds)
      : runs_(config, train, seeds) {}

  std::string device() const override { return described(runs_); }
  std::uint32_t iteration() const override { return runs_.iteration(); }
  double step_size(int run) const override { return runs_.step_size(run); }
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override { runs_.train(iterations, metrics); }
  const std::string& failure(int run) const override { return runs_.failure(run); }
  TrainState save(int run) const override { return runs_.save(run); }
  void restore(int run, const TrainState& state) override { runs_.restore(run, state); }

 private:
  cuda::Runs runs_;
};

void check_possible(const TrainConfig& config) {
  if (const CudaSupport support = cuda_support(); !support.missing.empty())
    throw KeyError("engine", "cuda: " + support.missing);
  check(config, EngineKind::cuda);
}

}  // namespace

CudaSupport cuda_support() {
  CudaSupport support;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    support.missing = status == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old for this build of CUDA"
                      : status == cudaSuccess               ? "no device"
                                                            : cudaGetErrorString(status);
    return support;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    cuda::check(cudaGetDeviceProperties(&p, i), "asking for the devices");
    support.devices.push_back({p.name, p.major, p.minor, p.multiProcessorCount, p.totalGlobalMem});
  }
  if (support.devices.front().major < 8) support.missing = "the first device is of compute capability below 8.0";
  return support;
}

std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train) {
  check_possible(config);
  return std::make_unique<CudaEngine>(config, train);
}

std::unique_ptr<EngineGroup> make_cuda_group(const TrainConfig& config, const DataSet& train,
                                             const std::vector<std::uint64_t>& seeds) {
  check_possible(config);
  return std::make_unique<CudaGroup>(config, train, seeds);
}

}  // namespace hone
