#pragma once

#include <functional>

#include "hone/base/bytes.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/ranks.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

// What a batch of gradients takes, in seconds, by rank 0's clock.
struct SharedPace {
  int ranks, columns;
  double gradient;       // one, on one thread
  double alone, shared;  // the batch: in this process with its threads, as far as one can tell, and on all ranks
  double exchange;       // of `shared`: exchanging numbers with other ranks, and waiting for them
};

// Measures the batches that ranks share, and speaks once: of slow gradients after a few batches; of others when large
// batches have come, as those of the chains, in which most of a fit's gradients are.
class PaceMeter {
 public:
  static constexpr int large = 64, large_batches = 20, slow_batches = 3;
  static constexpr double slow = 1e-3;  // seconds

  std::function<void(const SharedPace&)> tell;

  struct Batch {
    int columns, own, threads;  // own: columns of this rank
    double computing, all;      // seconds
  };
  void add(const Batch& batch, int ranks);

 private:
  struct Sums {
    int batches = 0;
    double columns = 0, gradient = 0, alone = 0, shared = 0, exchange = 0;
    void add(const Batch& batch);
  };
  Sums any_, large_;
};

// Rank 0's view of a posterior that all ranks have opened: each rank evaluates its share of a batch. A column does not
// depend on who evaluates it, so the bits are those of one process. Batches too small to share are rank 0's own; only
// these may be evaluated from several threads at once.
class SharedPosterior final : public Posterior {
 public:
  // The other ranks are in serve_evaluations, with the same posterior. `threads` of this rank work on its share.
  SharedPosterior(const Posterior& posterior, Ranks& ranks, int threads);
  ~SharedPosterior() override;  // the others return, unless the ranks are lost
  SharedPosterior(const SharedPosterior&) = delete;
  SharedPosterior& operator=(const SharedPosterior&) = delete;

  // False after a call that failed in the middle: the others still wait for it, and the job must be aborted.
  bool in_step() const { return in_step_ && ranks_.sound(); }

  // `tell` hears once, during an evaluation, what ranks bring.
  void on_pace(std::function<void(const SharedPace&)> tell) { meter_.tell = std::move(tell); }

  // The other ranks do their OtherWork with `job` while this rank does `own`. Within `own` this rank evaluates alone,
  // from several threads if it likes.
  void together(Bytes job, const std::function<void(Ranks&, Team&)>& own) const;

  int dimension() const override { return posterior_.dimension(); }
  int good_batch() const override;
  const std::vector<std::string>& names() const override { return posterior_.names(); }
  void constrain(std::span<const double> z, std::span<double> natural) const override {
    posterior_.constrain(z, natural);
  }
  void unconstrain(std::span<const double> natural, std::span<double> z) const override {
    posterior_.unconstrain(natural, z);
  }
  const std::vector<std::string>& coordinate_names() const override { return posterior_.coordinate_names(); }
  std::size_t parameter_count() const override { return posterior_.parameter_count(); }
  std::string complaint() const override { return posterior_.complaint(); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  const Posterior& posterior_;
  Ranks& ranks_;
  mutable Team team_;
  mutable std::vector<double> sent_;  // z, to be broadcast
  mutable PaceMeter meter_;
  mutable bool in_step_ = true, alone_ = false;
};

// What rank 0 may ask of the other ranks besides evaluations.
using OtherWork = std::function<void(const Target& target, Ranks& ranks, Team& team, Bytes job)>;

// What the other ranks do until rank 0's SharedPosterior ends.
void serve_evaluations(const Target& target, Ranks& ranks, int threads, const OtherWork& other = {});

}  // namespace hone
