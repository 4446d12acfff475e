#pragma once

#include <string>
#include <vector>

#include "app/run/paper/table1.hpp"

namespace hone {

// The recipe of configs/best: the paper's models and data, trained better. One row per model, data set and number t of
// steps.
struct BestRow {
  std::string model, data;  // "lmf", "mnist"
  double paper;             // the paper's best test log-likelihood for them, over its objectives
  TrainingCell cell;
};
// Scales shorter than the paper's 400,000 iterations shorten the schedules alike.
std::vector<BestRow> best_rows(const TrainingChoice& choice);

}  // namespace hone
