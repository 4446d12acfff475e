#pragma once

#include <string>
#include <vector>

#include "app/run/cells.hpp"
#include "app/run/toy.hpp"

namespace hone {

// Figure 1 of the paper: a Gaussian q on the three targets, a two-component q on the banana and, as a fifth panel, on
// the mixture. Both objectives start from the same values.
struct Fig1Panel {
  std::string letter;
  std::string title;
  Toy target;
  FamilyKind family;
};

const std::vector<Fig1Panel>& fig1_panels();

// The name of a run: seeds count from 1.
std::string fig1_cell_id(const Fig1Panel& panel, ObjectiveKind objective, int seed);

// The settings of a run, the paper's.
ToyConfig fig1_config(const Fig1Panel& panel, ObjectiveKind objective, int seed);

// Every panel, both objectives, every seed.
std::vector<Cell> fig1_cells(int seeds);

}  // namespace hone
