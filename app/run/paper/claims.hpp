#pragma once

#include <string>
#include <vector>

#include "app/run/cells.hpp"
#include "app/run/paper/timing.hpp"
#include "app/run/paper/training_cells.hpp"
#include "app/run/toy.hpp"

namespace hone {

// What the paper says in words without a figure, each as a small experiment. app/report/claims judges them.

// α against slow mixing (appendix 2), and li2017 at small t (section 3): fits of the Gaussian toy.
struct ToyRun {
  std::string variant;  // "slow", "slow-16" (with 16 draws an iteration), "mixing"; "li2017", "vcd"
  double alpha;
  int steps;
  std::uint64_t seed;
  Cell cell;
};
std::vector<ToyRun> alpha_runs(Scale scale, const std::vector<std::uint64_t>& seeds);
std::vector<ToyRun> li2017_runs(Scale scale, const std::vector<std::uint64_t>& seeds);

// The variance of a one-draw gradient at a fixed q on the Gaussian toy (section 2.4): without C, with C, and by the
// large-t estimator. Its summary.json has for each the variance summed over θ with its standard error, and the mean.
struct GradientPoint {
  std::string q;  // "start", "fitted"
  int steps;
  Cell cell;
};
std::vector<GradientPoint> gradient_points(Scale scale);

// Local C_n from iteration 0, or only after a shared beginning (section 4.2): trainings of logistic matrix
// factorization.
struct LocalBaselineCells {
  TrainingCell from_start, shared_first;
};
LocalBaselineCells local_baseline_cells(const TrainingChoice& choice, const std::string& data);

// Seconds an iteration by VCD and by Hoffman's method (section 4.2), timed in turns on one CPU thread.
struct SecondsPoint {
  std::string model;  // "lmf", "vae"
  Cell cell;
};
std::vector<SecondsPoint> seconds_points(Scale scale, const std::string& data, const TimingOptions& options);

}  // namespace hone
