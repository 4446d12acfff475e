#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run/paper/scale.hpp"
#include "app/run/paper/training_cells.hpp"

namespace hone {

// Options of all experiments that train.
struct TrainingChoice {
  Scale scale = Scale::brief;
  std::vector<std::uint64_t> seeds = {};  // empty: as many as the scale has
  EngineKind engine = EngineKind::automatic;
  int threads = 1;
};

// The seeds, or 1 … count if there are none.
std::vector<std::uint64_t> seeds_or(const std::vector<std::uint64_t>& seeds, int count);

// "vae-mnist-vcd", "vae-fashion-vcd-t4", "lmf-mnist-kl-3000": the name of the paper's configuration, then t and the
// iterations if they differ from the paper's 8 and 400,000.
std::string training_cell_id(const std::string& config_name, int steps, std::uint32_t iterations);

// The paper's Table 1 (tab:results_llh): two models, two data sets, three objectives.
struct Table1Row {
  std::string model, data, objective;  // "lmf", "mnist", "vcd"
  double paper;                        // average test log-likelihood
  TrainingCell cell;
};
std::vector<Table1Row> table1_rows(const TrainingChoice& choice);

// The paper's Figure 2 (fig:results_vae_vary_t): the VAE by VCD with t steps, and the level of KL.
struct Fig2Point {
  std::string data;
  std::optional<int> steps;     // none: the level of KL
  std::optional<double> paper;  // if Table 1 has the value; the paper only draws the others
  TrainingCell cell;
};
std::vector<Fig2Point> fig2_points(const TrainingChoice& choice);

inline constexpr int paper_steps[] = {2, 4, 8, 12, 16, 20, 25};

}  // namespace hone
