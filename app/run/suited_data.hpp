#pragma once

#include <string>

#include "app/data/load.hpp"
#include "app/run/train_config.hpp"

namespace hone {

// Throws KeyError, with the key that the data come from and the datum as their file counts it, if test or validation
// data do not suit the model: before the training, not during it.
void check_parts(const TrainRunConfig& config, const DataSplits& data);

// The error for training data that do not suit the model; `what`: the model's own message.
KeyError unsuited_training_data(const TrainRunConfig& config, const DataSplits& data, const std::string& what);

// What the likelihood does to training data, and whether they should be divided, for the user.
std::string scaling_of(const TrainRunConfig& config, const DataSet& train);

}  // namespace hone
