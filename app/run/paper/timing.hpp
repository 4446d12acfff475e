#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "app/data/load.hpp"
#include "app/run/cells.hpp"
#include "app/run/paper/pace.hpp"
#include "app/run/paper/table1.hpp"

namespace hone {

// Seconds an iteration, measured in blocks of iterations after a warm-up.
struct Timing {
  std::uint32_t iterations = 0;  // of each configuration, in all
  std::vector<double> seconds;   // an iteration, one a block
};

// Several configurations take turns, block by block, so that what else the machine does touches all alike. One result a
// configuration. Resolved configurations. Stopped where `stop` is not 0.
std::vector<Timing> time_in_turns(const std::vector<TrainRunConfig>& configs, const DataSet& data,
                                  std::uint32_t iterations, const std::atomic<int>* stop);

// A quantile of values, linear between the nearest two.
double quantile(std::vector<double> values, double probability);

// What cells that are timed share: data that are loaded once, how to end early, and how long things take.
struct TimingOptions {
  std::function<const DataSplits&(const std::string& data)> load;
  const std::atomic<int>* stop = nullptr;
  Pace* pace = nullptr;  // none: no estimates
};

// The paper's Figure 3 (fig:results_vae_vary_t_telapsed): seconds an iteration of the VAE by VCD against t, on one CPU
// thread as in the paper and on a device. Every point is timed alone.
struct Fig3Point {
  std::string data, engine;  // "fashion", "cpu"
  std::string data_set;      // "fashion-mnist"
  int steps;
  bool here;  // can be timed on this machine: a point of a device may come from another
  Cell cell;
};
std::vector<Fig3Point> fig3_points(Scale scale, const TimingOptions& options);

}  // namespace hone
