#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/run/progress.hpp"
#include "app/run/run_folder.hpp"

namespace hone {

// One run of an experiment: what it is called, its whole configuration, and how to do it.
struct Cell {
  std::string id;      // also the name of its folder
  std::string config;  // its config.toml: a finished cell counts only if it was run with the same
  std::function<void(const RunFolder&)> run;  // writes config.toml and summary.json, among others
  double seconds = 0;                         // that it takes, about
};

// How a cell stands under an experiment's folder, with the configuration that it has now. One whose summary.json is no
// JSON is damaged; it is run again, as one that is to do.
enum class CellState { to_do, damaged, done };
CellState state_of(const std::filesystem::path& experiment, const Cell& cell);
inline bool is_done(const std::filesystem::path& experiment, const Cell& cell) {
  return state_of(experiment, cell) == CellState::done;
}

// A resumable list of cells under one folder. A cell is run in ID.partial and renamed when it is finished, so that a
// folder ID holds a whole run: stopped anywhere and started again, the list goes on with what is missing.
class CellList {
 public:
  CellList(std::filesystem::path folder, std::vector<Cell> cells);

  std::size_t size() const { return cells_.size(); }
  const Cell& operator[](std::size_t cell) const { return cells_[cell]; }
  CellState state(std::size_t cell) const { return state_of(folder_, cells_[cell]); }
  bool is_done(std::size_t cell) const { return state(cell) == CellState::done; }
  std::filesystem::path folder_of(std::size_t cell) const;

  // Runs what is not done, `threads` cells at a time. A cell's exception ends the list after the cells under way; so
  // does `stop`, where it is there and not 0, by a Stopped.
  void run(int threads, Progress& progress, const std::atomic<int>* stop = nullptr) const;

 private:
  std::filesystem::path folder_;
  std::vector<Cell> cells_;
};

}  // namespace hone
