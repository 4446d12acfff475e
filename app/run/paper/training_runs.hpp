#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "app/run/paper/training_cells.hpp"
#include "app/run/progress.hpp"

namespace hone {

struct TrainingCellOptions {
  std::filesystem::path data_dir = {};
  const std::atomic<int>* stop = nullptr;  // not 0: write a checkpoint, then throw Stopped
  std::function<void(const std::string&)> say = {};
  std::function<void(const std::string&)> warn = {};  // what the user must know, also if quiet
  ProgressStyle progress = ProgressStyle::quiet;
};

// Trains and evaluates what is not done yet. If runs fail, the others are still done, and an Error names all failures.
void run_cell(const std::filesystem::path& experiment, const TrainingCell& cell, const TrainingCellOptions& options);

}  // namespace hone
