#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "app/run/progress.hpp"
#include "app/run/watched_posterior.hpp"
#include "hone/fit/posterior_fit.hpp"

namespace hone {

// The progress of work on a posterior against its budget, of gradients or of seconds. Each evaluation moves it.
class BudgetBar {
 public:
  BudgetBar(const Posterior& posterior, const Budget& budget, const std::string& label, bool quiet);

  const Posterior& posterior() const { return watched_; }  // to work on
  const Stopwatch& watch() const { return watch_; }
  void doing(const std::string& text, std::int64_t gradients);  // what the work does now
  void remark(const std::string& text) { progress_.remark(text); }
  void finish(std::int64_t gradients);

 private:
  void tick(std::int64_t gradients);

  bool timed_;
  Stopwatch watch_;
  std::int64_t total_;
  Progress progress_;
  std::thread::id own_ = std::this_thread::get_id();  // the only one that shows anything
  std::string doing_;
  WatchedPosterior watched_;
};

}  // namespace hone
