#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "hone/target/posterior.hpp"

namespace hone::python {

namespace nb = nanobind;

// Ends long work early, with what there is. A signal handler in Python sets it.
struct Stop {
  std::atomic<bool> set = false;
  std::atomic<int> signal = 0;  // for work that asks for the signal
};

// Tells Python how far long work is, and lets Python run its signal handlers, about twenty times per second. Long work
// runs without the GIL; this takes it. Only the thread that started the work tells; on others it does nothing.
class Watch {
 public:
  explicit Watch(nb::object tell) : tell_(std::move(tell)) {}

  void tick(std::int64_t done);                          // cheap where it is not time yet
  void say(const std::string& text, std::int64_t done);  // at once

 private:
  void call(std::int64_t done);

  nb::object tell_;  // called with (text, done); None: nothing to tell
  std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::string text_;
};

// A posterior that tells a watch of its evaluations.
class WatchedPosterior final : public Posterior {
 public:
  WatchedPosterior(const Posterior& posterior, Watch& watch) : posterior_(posterior), watch_(watch) {}
  int dimension() const override { return posterior_.dimension(); }
  const std::vector<std::string>& names() const override { return posterior_.names(); }
  const std::vector<std::string>& coordinate_names() const override { return posterior_.coordinate_names(); }
  std::size_t parameter_count() const override { return posterior_.parameter_count(); }
  std::string complaint() const override { return posterior_.complaint(); }
  int good_batch() const override { return posterior_.good_batch(); }
  void constrain(std::span<const double> z, std::span<double> natural) const override {
    posterior_.constrain(z, natural);
    watch_.tick(evaluations_);
  }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    posterior_.evaluate(z, want, value, gradient);
    watch_.tick(evaluations_ += z.cols());
  }

 private:
  const Posterior& posterior_;
  Watch& watch_;
  mutable std::atomic<std::int64_t> evaluations_ = 0;
};

}  // namespace hone::python
