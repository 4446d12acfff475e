#pragma once

#include <string>
#include <vector>

#include "app/run/cells.hpp"
#include "app/run/paper/timing.hpp"
#include "app/run/paper/training_cells.hpp"
#include "app/run/toy.hpp"

namespace hone {

// Claims that the paper makes in words, without a figure: one small experiment each. app/report/claims judges them.

// α against slow mixing (appendix 2), and li2017 at small t (section 3): fits of the Gaussian toy.
struct ToyRun {
  std::string variant;  // "slow", "slow-16" (with 16 draws per iteration), "mixing"; "li2017", "vcd"
  double alpha;
  int steps;
  std::uint64_t seed;
  Cell cell;
};
std::vector<ToyRun> alpha_runs(Scale scale, const std::vector<std::uint64_t>& seeds);
std::vector<ToyRun> li2017_runs(Scale scale, const std::vector<std::uint64_t>& seeds);

// The variance of a one-draw gradient at a fixed q on the Gaussian toy (section 2.4): without C, with C, and with the
// large-t estimator. For each, summary.json has the variance summed over θ with its standard error, and the mean.
struct GradientPoint {
  std::string q;  // "start", "fitted"
  int steps;
  Cell cell;
};
std::vector<GradientPoint> gradient_points(Scale scale);

// Logistic matrix factorization with local C_n from the start, or after a shared warm-up (section 4.2).
struct LocalBaselineCells {
  TrainingCell from_start, shared_first;
};
LocalBaselineCells local_baseline_cells(const TrainingChoice& choice, const std::string& data);

// Seconds per iteration by VCD and by Hoffman's method (section 4.2), timed in turns on one CPU thread.
struct SecondsPoint {
  std::string model;  // "lmf", "vae"
  Cell cell;
};
std::vector<SecondsPoint> seconds_points(Scale scale, const std::string& data, const TimingOptions& options);

}  // namespace hone
