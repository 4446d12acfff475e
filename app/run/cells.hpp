#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/run/cell_lock.hpp"
#include "app/run/progress.hpp"
#include "app/run/run_folder.hpp"

namespace hone {

// One run of an experiment: its name, its whole configuration, and how to run it.
struct Cell {
  std::string id;                             // also the name of its folder
  std::string config;                         // its config.toml: a finished cell counts only if it has the same keys
  std::function<void(const RunFolder&)> run;  // writes config.toml, summary.json and more
  double seconds = 0;                         // how long it takes, roughly
};

// The state of a cell in an experiment's folder, for its current configuration. A cell whose summary.json is not valid
// JSON is damaged, and is run again.
enum class CellState { to_do, damaged, done };
CellState state_of(const std::filesystem::path& experiment, const Cell& cell);
inline bool is_done(const std::filesystem::path& experiment, const Cell& cell) {
  return state_of(experiment, cell) == CellState::done;
}

// Throws InputError if the folder holds something other than an experiment.
void check_experiment_folder(const std::filesystem::path& folder);

// The file by which a process claims a cell of an experiment (cell_lock.hpp).
std::filesystem::path lock_of(const std::filesystem::path& experiment, const std::string& cell);

// A resumable list of cells in one folder. A cell runs in ID~CLAIM.partial, which is renamed to ID when it is finished.
// So a folder ID always holds a whole run, and a list that was stopped continues with what is missing. Several
// processes may run the list at once: each cell is run by one of them.
class CellList {
 public:
  CellList(std::filesystem::path folder, std::vector<Cell> cells);

  std::size_t size() const { return cells_.size(); }
  const Cell& operator[](std::size_t cell) const { return cells_[cell]; }
  CellState state(std::size_t cell) const { return state_of(folder_, cells_[cell]); }
  bool is_done(std::size_t cell) const { return state(cell) == CellState::done; }
  std::filesystem::path folder_of(std::size_t cell) const;

  // Runs what is not done and no other process has claimed, `threads` cells at a time. If a cell throws, the running
  // cells finish, then the exception is rethrown. If `stop` is given and becomes non-zero, the running cells finish,
  // then it throws Stopped.
  void run(int threads, Progress& progress, const std::atomic<int>* stop = nullptr) const;

 private:
  void make(std::size_t cell, const CellLock& claim) const;
  void remove_old_claims() const;

  std::filesystem::path folder_;
  std::vector<Cell> cells_;
};

}  // namespace hone
