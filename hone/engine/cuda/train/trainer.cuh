#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/engine/cuda/train/launches.cuh"
#include "hone/engine/engines.hpp"
#include "hone/engine/train_state.hpp"

namespace hone::cuda {

// Runs iterations, as graphs that are recorded once; one by one if ranks share them.
class Trainer {
 public:
  Trainer(const TrainPlan& plan, const RunMemory& memory, const std::vector<std::uint64_t>& seeds, Ranks* ranks);

  std::uint32_t iteration() const { return iteration_; }
  double step_size(int run) const { return step_size_[run]; }
  const std::string& failure(int run) const { return failure_[run]; }  // as Engine::failure
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics);
  void restart(int run, std::uint32_t iteration, double step_size);  // after the run's state was set

  const Launches& launches() const { return launches_; }
  // The run's next iteration, whose minibatch is the first of those on the device.
  void start_at(int run, std::uint32_t iteration);

 private:
  Graph recorded(std::uint32_t iterations) const;
  void launch_all(std::uint32_t iterations) const;
  void spread_baselines();  // local control variates begin with what all data had in common
  void train_chunk(std::uint32_t count, std::uint32_t next, std::span<TrainMetrics> metrics);  // next: how many follow
  const std::vector<int>& minibatches_from(std::uint32_t first, std::uint32_t count);
  std::string add_metrics(int run, std::span<const MetricsRow> rows, TrainMetrics& metrics);  // what ended the run

  const TrainPlan& plan_;
  const RunMemory& memory_;
  Launches launches_;
  Graph one_, several_;  // iterations
  std::vector<std::unique_ptr<Minibatches>> minibatches_;
  struct {
    std::uint32_t first = 0, count = 0;  // iterations
    std::vector<int> indices;            // (run, iteration, batch)
  } ahead_;                              // minibatches that are made while the device trains
  std::uint32_t iteration_ = 0;
  std::vector<double> step_size_;
  std::vector<std::string> failure_;
};

}  // namespace hone::cuda
