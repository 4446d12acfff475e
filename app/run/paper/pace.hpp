#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/run/paper/training_cells.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// Estimates how long things will take on this machine. It times a few iterations on synthetic data, once per kind of
// configuration. An evaluation's time follows from its FLOPs at the rate that those iterations reached.
class Pace {
 public:
  Pace();

  // For a resolved configuration: the time of one iteration of all runs.
  double seconds_per_iteration(const TrainRunConfig& config, int runs);
  double evaluation_seconds(const TrainingCell& cell);

  // For what is left to do.
  double seconds(const TrainingCell& cell, const TrainingState& state);

 private:
  DataSet data_;
  std::map<std::string, double> known_;
};

}  // namespace hone
