#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "app/run/cells.hpp"
#include "app/run/paper/table1.hpp"

namespace hone {

class DataSet;      // hone/latent/data_set.hpp
struct DataSplits;  // data/load.hpp
class Pace;         // pace.hpp

// Seconds per iteration, measured in blocks of iterations after a warm-up.
struct Timing {
  std::uint32_t iterations = 0;  // in all blocks
  std::vector<double> seconds;   // per iteration, one value per block
};

// Times resolved configurations, one result for each. They take turns, block by block, so that other load on the
// machine affects all of them alike. Throws Stopped when `stop` is not 0.
std::vector<Timing> time_in_turns(const std::vector<TrainRunConfig>& configs, const DataSet& data,
                                  std::uint32_t iterations, const std::atomic<int>* stop);

// A quantile of values, linear between the nearest two.
double quantile(std::vector<double> values, double probability);

// What timed cells share.
struct TimingOptions {
  std::function<const DataSplits&(const std::string& data)> load;  // loads each data set once
  const std::atomic<int>* stop = nullptr;                          // not 0: end early
  Pace* pace = nullptr;                                            // null: no estimates of the time
};

// The paper's Figure 3 (fig:results_vae_vary_t_telapsed): seconds per iteration of the VAE by VCD against t, on one CPU
// thread as in the paper and on a device. Each point is timed alone.
struct Fig3Point {
  std::string data, engine;  // "fashion", "cpu"
  std::string data_set;      // "fashion-mnist"
  int steps;
  std::string no_device;  // why this machine cannot time it; the cell may still come from another machine
  Cell cell;

  bool here() const { return no_device.empty(); }  // can be timed on this machine
};
std::vector<Fig3Point> fig3_points(Scale scale, const TimingOptions& options);

}  // namespace hone
