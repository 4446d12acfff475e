#pragma once

#include "hone/engine/cuda/train/run_memory.cuh"

namespace hone::cuda {

// What an iteration of all runs launches, on a queue of its own.
class Launches {
 public:
  Launches(const TrainPlan& plan, const RunMemory& memory);

  const Queue& queue() const { return queue_; }
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
  void refine(const Space& space, const Surroundings& around) const;
  template <class Networks>
  void refine_by(const Networks& decoder, const Space& space) const;

  const TrainPlan& plan_;
  const RunMemory& memory_;
  Queue queue_;
  Memory<UpdateTask> tasks_;
  int strips_ = 0;  // of the tasks, which come first
};

}  // namespace hone::cuda
