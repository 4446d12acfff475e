#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/data/load.hpp"
#include "app/report/table1.hpp"
#include "app/run/paper/timing.hpp"

namespace hone {

// Data sets that experiments use, loaded once, on first use.
class DataShelf {
 public:
  explicit DataShelf(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}
  const DataSplits& get(const std::string& name);  // InputError if it is not found
  std::string missing(const std::string& name);    // why it is not available; empty: it is

 private:
  std::filesystem::path data_dir_;
  std::map<std::string, DataSplits> loaded_;
};

struct ExperimentOptions {
  TrainingChoice choice;
  TimingOptions timing;
  std::map<std::string, std::string> missing;  // data set → why it is missing: its cells are left out
};

// An experiment of the paper: what to run, and how to report it.
struct Experiment {
  std::string name;
  std::vector<Cell> cells;                                  // short ones, which may run at the same time
  std::vector<Cell> timed;                                  // each alone
  std::vector<TrainingCell> trainings;                      // one after the other
  std::function<std::string(const ReportContext&)> report;  // of all cells, done or not
};

// fig1, claims, fig3, table1, fig2: in the order in which `all` runs them; and best, which is not the paper's.
const std::vector<std::string>& experiment_names();

// The data sets that an experiment uses.
std::vector<std::string> data_of_experiment(const std::string& name, Scale scale);

Experiment make_experiment(const std::string& name, const ExperimentOptions& options);

// Keeps the cells whose id matches a shell pattern ("vae-mnist-*"); drops the others.
void keep_matching(Experiment& experiment, const std::string& pattern);

}  // namespace hone
