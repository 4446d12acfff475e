#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "hone/target/posterior.hpp"

namespace hone {

// A posterior that tells how often it was evaluated. `tick` is called on the threads that evaluate, very often.
class WatchedPosterior final : public Posterior {
 public:
  WatchedPosterior(const Posterior& posterior, std::function<void(std::int64_t)> tick)
      : posterior_(posterior), tick_(std::move(tick)) {}
  int dimension() const override { return posterior_.dimension(); }
  const std::vector<std::string>& names() const override { return posterior_.names(); }
  const std::vector<std::string>& coordinate_names() const override { return posterior_.coordinate_names(); }
  std::size_t parameter_count() const override { return posterior_.parameter_count(); }
  std::string complaint() const override { return posterior_.complaint(); }
  int good_batch() const override { return posterior_.good_batch(); }
  void constrain(std::span<const double> z, std::span<double> natural) const override {
    posterior_.constrain(z, natural);
    tick_(evaluations_);
  }
  void evaluated_elsewhere(std::int64_t points) const override { tick_(evaluations_ += points); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    posterior_.evaluate(z, want, value, gradient);
    tick_(evaluations_ += z.cols());
  }

 private:
  const Posterior& posterior_;
  std::function<void(std::int64_t)> tick_;
  mutable std::atomic<std::int64_t> evaluations_ = 0;
};

}  // namespace hone
