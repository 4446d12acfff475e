#pragma once

#include "hone/engine/cuda/share/sharing.cuh"
#include "hone/engine/cuda/train/run_memory.cuh"

namespace hone::cuda {

// What an iteration of all runs launches, on a queue of its own.
class Launches {
 public:
  // `ranks`, if there are any, share the minibatches of a single run that goes by products.
  Launches(const TrainPlan& plan, const RunMemory& memory, Ranks* ranks);

  const Queue& queue() const { return queue_; }
  // Whether ranks share an iteration: the host exchanges numbers in the middle of it, so it cannot be recorded.
  bool shared() const { return sharing_.has_value(); }
  void prepare(const Space& space) const {  // the first of some iterations
    launch_prepare(space, update(), plan_.runs, queue_);
  }
  // An iteration that is prepared in `space`; it prepares the one that follows it in `next` (null: none).
  void iterate(const Space& space, const Space* next) const;
  void refine_alone(const Space& space) const { refine(space, {}); }  // from where the chains stand

 private:
  ObjectiveSpec objective() const;
  Surroundings surroundings() const;
  UpdateSpec update() const;
  std::vector<UpdateTask> tasks() const;
  struct OneNetwork {
    Net net;
    Tape tape;
  };
  OneNetwork encoder_network(int index) const;  // of the means, of the deviations
  void refine(const Space& space, const Surroundings& around) const;
  void sum_convolutions(const Space& space) const;
  Space own_of(const Space& space) const { return sharing_ ? space.of_rows(sharing_->rows()) : space; }
  template <class Networks>
  void refine_by(const Networks& decoder, const Space& space) const;

  const TrainPlan& plan_;
  const RunMemory& memory_;
  Queue queue_;
  std::optional<Sharing> sharing_;  // none: this process has all rows
  Memory<UpdateTask> tasks_;
  int strips_ = 0;  // of the tasks, which come first
};

}  // namespace hone::cuda
