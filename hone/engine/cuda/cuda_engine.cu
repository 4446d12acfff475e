#include "hone/engine/cuda/cuda_engine.hpp"

#include "hone/base/error.hpp"
#include "hone/engine/cuda/runs.cuh"
#include "hone/engine/engines.hpp"

namespace hone {
namespace {

class CudaEngine final : public Engine {
 public:
  CudaEngine(const TrainConfig& config, const DataSet& train, const std::vector<std::uint64_t>& seeds)
      : runs_(config, train, seeds) {}

  int runs() const override { return runs_.count(); }
  std::string device() const override { return cuda_support().devices.front().name + ", " + runs_.path(); }
  std::uint32_t iteration() const override { return runs_.iteration(); }
  double step_size(int run) const override { return runs_.step_size(run); }
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override { runs_.train(iterations, metrics); }
  const std::string& failure(int run) const override { return runs_.failure(run); }
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress, int run) override {
    return runs_.evaluate(run, data, config, progress);
  }
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress, int run) override {
    return runs_.anneal(run, data, task, progress);
  }
  SimulatedData simulate(int count, int run) const override { return runs_.simulate(run, count); }
  TrainState save(int run) const override { return runs_.save(run); }
  void restore(const TrainState& state, int run) override { runs_.restore(run, state); }

 private:
  cuda::Runs runs_;
};

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
    support.devices.push_back({.name = p.name,
                               .major = p.major,
                               .minor = p.minor,
                               .multiprocessors = p.multiProcessorCount,
                               .memory = p.totalGlobalMem});
  }
  if (support.devices.front().major < 8) support.missing = "the first device is of compute capability below 8.0";
  return support;
}

std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train,
                                         const std::vector<std::uint64_t>& seeds) {
  if (const CudaSupport support = cuda_support(); !support.missing.empty())
    throw KeyError("engine", "cuda: " + support.missing);
  check(config, EngineKind::cuda);
  return std::make_unique<CudaEngine>(config, train, seeds.empty() ? std::vector{config.seed} : seeds);
}

}  // namespace hone
