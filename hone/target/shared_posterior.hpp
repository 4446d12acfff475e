#pragma once

#include <functional>

#include "hone/base/bytes.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/ranks.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

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
  mutable bool in_step_ = true, alone_ = false;
};

// What rank 0 may ask of the other ranks besides evaluations.
using OtherWork = std::function<void(const Target& target, Ranks& ranks, Team& team, Bytes job)>;

// What the other ranks do until rank 0's SharedPosterior ends.
void serve_evaluations(const Target& target, Ranks& ranks, int threads, const OtherWork& other = {});

}  // namespace hone
