#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/run/paper/training_cells.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// How long things will take here, about: a few iterations on synthetic data are timed, once for each kind that is asked
// for. An evaluation's time follows from its FLOPs at the rate that those iterations reached.
class Pace {
 public:
  Pace();

  double seconds_per_iteration(const TrainRunConfig& config, int runs);  // of all runs, on a resolved configuration
  double evaluation_seconds(const TrainingCell& cell);

  // Of what is left to do.
  double seconds(const TrainingCell& cell, const TrainingState& state);

 private:
  DataSet data_;
  std::map<std::string, double> known_;
};

}  // namespace hone
