#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hone/base/ranks.hpp"
#include "hone/engine/cuda/share/sums.cuh"
#include "hone/engine/cuda/train/plan.cuh"

namespace hone::cuda {

// Memory of the host that does not move: the device copies from and to it while the host does other things.
template <class T>
class Pinned {
 public:
  explicit Pinned(std::size_t size) : size_(size) {
    check(cudaMallocHost(&data_, size * sizeof(T)), "allocating memory for what ranks exchange");
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::span<T> all() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// A place in a queue that the host can wait for.
class Mark {
 public:
  Mark() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  ~Mark() {
    if (event_) cudaEventDestroy(event_);
  }
  Mark(Mark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Mark& operator=(Mark&&) = delete;
  void set(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "marking a place"); }
  void wait() const { check(cudaEventSynchronize(event_), "running on the device"); }

 private:
  cudaEvent_t event_ = nullptr;
};

// Values of a datum after the objective, which all ranks receive.
struct DatumNews {
  double elbo, refined, terms[2], acceptance;
  int alive, proposals, nonfinite, unused;
};

// Ranks that share the minibatch of one run, each on a device: every rank has some rows, and the parameters, control
// variates and values of all. What goes from rank to rank goes through pinned memory of the host. All ranks make the
// same calls in the same order; each returns when this rank has what it needs, with work for the device still queued.
class Sharing {
 public:
  // Gives every task the place of its sums.
  Sharing(const TrainPlan& plan, Ranks& ranks, std::vector<UpdateTask>& tasks, cudaStream_t stream);

  const ItemRange& rows() const { return rows_; }  // of this rank, perhaps none

  // After an HMC step: own outcomes → those of all chains.
  void exchange_outcomes(const ChainArrays& chains) const;
  // Begins to copy the objective's values of own rows to the host; then: hands out those of all rows.
  void send_news(const Space& own) const;
  void receive_news(const Space& space) const;
  // The gradient, a sum over all rows in their order: each rank continues the sums of the rank before it, in blocks
  // that follow each other through the ranks; the last one has the result. Then the optimizer's step, on all ranks.
  // `meanwhile` launches what a device can do while the ranks exchange sums.
  void update(const Space& space, const Space& own, const UpdateSpec& spec,
              const std::function<void()>& meanwhile) const;

 private:
  template <class T>
  void gather(std::span<T> values) const;
  std::span<std::byte> bytes_of(const TaskBlock& block) const;
  void to_device(const TaskBlock& block) const;
  void pass_on(std::size_t block) const;

  Ranks& ranks_;
  cudaStream_t stream_;
  int batch_;
  ItemRange rows_;
  std::vector<TaskBlock> blocks_;
  std::vector<Mark> on_host_;  // blocks
  Mark news_on_host_;
  Memory<float> sums_;
  Memory<DatumNews> news_;   // of all rows
  Pinned<float> host_sums_;  // as on the device
  Pinned<DatumNews> host_news_;
  Pinned<int> host_outcomes_;
};

}  // namespace hone::cuda
