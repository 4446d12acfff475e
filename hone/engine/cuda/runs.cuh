#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/engine/cpu/model.hpp"
#include "hone/engine/cuda/network_products.cuh"
#include "hone/engine/cuda/padded_parameters.hpp"
#include "hone/engine/cuda/trajectory.cuh"
#include "hone/engine/engine.hpp"

namespace hone::cuda {

// Hands out parts of a block of memory; without one it only counts.
class Arena {
 public:
  explicit Arena(char* base) : base_(base) {}
  template <class T>
  T* take(std::size_t count) {
    auto* part = reinterpret_cast<T*>(base_ + used_);
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  std::size_t used() const { return used_; }

 private:
  char* base_;
  std::size_t used_ = 0;
};

// How refinements are executed: by a cluster kernel where the decoder fits one, else by teams of blocks, with as many
// chains each as suits the number of runs; else, or where that is much faster, product by product. `all_products`: q's
// networks too.
enum class PathKind { chosen, clusters, teams, products, all_products };
struct PathOptions {
  PathKind kind = PathKind::chosen;
  int chains = 0;  // of a cluster: 8, 16, 32; of a team: 16, 32, 64; 0: chosen
  int blocks = 0;  // of a cluster: 1, 2, 4, 8, 16; of a team: any number; 0: chosen

  bool operator==(const PathOptions&) const = default;
};

// Some data as the device wants them.
struct PointData {
  std::vector<float> x;          // (points, padded width)
  std::vector<double> constant;  // of log p(x | z), one a point
};

// Some runs of one configuration that differ by their seeds, side by side on one device. All make the same iterations
// at the same time.
class Runs {
 public:
  Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path = {});
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  int count() const { return static_cast<int>(seeds_.size()); }
  std::uint32_t iteration() const { return iteration_; }
  double step_size(int run) const { return step_size_[run]; }
  std::string path() const { return path_; }  // how an iteration is executed, in words
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics);
  const std::string& failure(int run) const { return failure_[run]; }  // as EngineGroup::failure
  TrainState save(int run) const;
  void restore(int run, const TrainState& state);
  std::vector<PointEvaluation> evaluate(int run, const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress);

  std::vector<AnnealedPoint> anneal(int run, const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress);
  SimulatedData simulate(int run, int count) const;

  // What the last iteration held, for tests: doubles, (batch, D) or (batch).
  struct Probe {
    std::vector<double> mean, sd, z0, log_p0, grad_p0, z, value, acceptance;
  };
  Probe probe(int run) const;
  // A refinement alone, for tests, where there is one run: of the data from `first` on, from given points (batch, D)
  // instead of draws of q, as in iteration `iteration`. `plant` may change its random numbers, where one kernel makes
  // it.
  struct DrawnNumbers {
    std::vector<double> momentum, log_uniform;  // (steps, batch, D), (steps, batch)
  };
  Probe refine(std::uint32_t iteration, int first, std::span<const double> points,
               const std::function<void(DrawnNumbers&)>& plant = {});

 private:
  void place(Arena arena);
  Net net_of(const std::string& name, int inputs, const std::vector<int>& hidden, int outputs) const;
  Tape tape_of(Arena& arena, const Net& net, const float* input, int ld_input, int copies) const;
  void upload_data();
  PointData load_points(const DataSet& data, int begin, int count) const;
  void upload_parameters(int run);
  void plan_refinement(const PathOptions& options);
  void make_tasks();
  UpdateSpec update_spec() const;
  Packing packing() const;
  void capture_iteration(const Space& space, const Space* next);
  void launch_refinement(const Space& space, const Surroundings& around);
  EncoderSpec encoder() const { return {mean_net_, net_parameters_, encoder_tape_, first_sums_}; }
  ObjectiveSpec objective() const;
  void refine_by_products(const Space& space);
  template <class N>
  void refine_by(const N& decoder, const Space& space);
  HmcShape hmc_shape() const { return {config_.kernel.leapfrog, config_.kernel.leapfrog_jitter}; }
  cudaGraphExec_t captured(int iterations);
  void start_at(int run, std::uint32_t iteration);
  void train_chunk(std::uint32_t count, std::uint32_t next, std::span<TrainMetrics> metrics);  // next: how many follow
  const std::vector<int>& minibatches_from(std::uint32_t first, std::uint32_t count);
  void add_metrics(std::uint32_t count, std::span<TrainMetrics> metrics);
  std::string add_metrics(int run, std::span<const MetricsRow> rows, TrainMetrics& metrics);  // what ended the run
  RunState state_of(int run) const;
  void set_state(int run, const RunState& state);
  StepSizeArrays step_sizes() const {  // one for all chains of a run
    return {&space_.state->step_size,
            {config_.refine.step_size, config_.refine.acceptance, config_.refine.gain},
            config_.batch,
            space_.stride};
  }
  bool refines() const { return config_.objective.kind != ObjectiveKind::kl; }
  std::size_t bytes_of_run() const { return 4 * space_.stride; }
  template <class T>
  T* of(T* pointer, int run) const {
    using Plain = std::remove_const_t<T>;
    return reinterpret_cast<Plain*>(reinterpret_cast<char*>(const_cast<Plain*>(pointer)) +
                                    static_cast<std::size_t>(run) * bytes_of_run());
  }

  TrainConfig config_;
  const DataSet& data_;
  std::vector<std::uint64_t> seeds_;
  mutable Model<float> model_;  // names, shapes, the start, exact likelihoods
  PaddedParameters padded_;
  Math math_;
  Net decoder_net_, mean_net_;
  ProductPath encoder_path_, decoder_path_;  // where they go by products
  std::size_t net_parameters_ = 0;           // from the mean's network to the deviations'
  std::vector<std::unique_ptr<Minibatches>> minibatches_;
  struct {
    std::uint32_t first = 0, count = 0;  // iterations
    std::vector<int> indices;            // (run, iteration, batch)
  } ahead_;                              // minibatches that are made while the device trains
  std::uint32_t iteration_ = 0;
  std::vector<double> step_size_;
  std::vector<std::string> failure_;
  std::string path_;

  Queue queue_;
  Memory<char> memory_;
  Memory<std::uint64_t> bits_, seed_memory_;
  Memory<float> values_;
  Memory<double> constants_;
  Memory<uint4> team_memory_;
  Memory<UpdateTask> tasks_;
  int strips_ = 0;  // of the tasks, which come first
  Space space_ = {};
  Tape encoder_tape_ = {}, decoder_tape_ = {};
  FirstLayerSums first_sums_;
  std::optional<TrajectoryPlan> plan_;
  bool takes_encoder_ = false;
  Net encoder_products_;  // layers of q's networks that go by products: all, the first or none
  Surroundings around_;
  int wave_ = 1;                                         // runs whose clusters are resident at a time
  cudaGraphExec_t graph_ = nullptr, several_ = nullptr;  // an iteration; `at_once` of them
};

}  // namespace hone::cuda
