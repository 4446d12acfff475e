#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/data/load.hpp"
#include "app/run/checkpoint.hpp"
#include "app/run/train_config.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

class Lead;  // hone/engine/lead.hpp

// The data of a run. Anything wrong with them is a KeyError of the key that names them.
DataSplits load_run_data(const TrainRunConfig& config, const std::filesystem::path& data_dir,
                         ColourPlanes planes = ColourPlanes::taken);

// An engine with one run per seed; with a lead, its ranks share the work. Errors name the key that asks for the
// impossible.
std::unique_ptr<Engine> engine_of(const TrainRunConfig& config, const DataSplits& data,
                                  std::vector<std::uint64_t> seeds, Lead* lead);

// The model in a run folder, as last trained, with its data.
struct TrainedModel {
  TrainRunConfig config;
  DataSplits data;
  std::unique_ptr<Engine> engine;
};

// `threads` replaces the run's own number; with a lead, its ranks share the work. Throws InputError if the folder holds
// no run or no good checkpoint.
std::unique_ptr<TrainedModel> load_model(const std::filesystem::path& folder, const std::filesystem::path& data_dir,
                                         int threads, const std::function<void(const std::string&)>& say,
                                         Lead* lead = nullptr, WhichModel which = WhichModel::newest);

}  // namespace hone
