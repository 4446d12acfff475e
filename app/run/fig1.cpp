#include "app/run/fig1.hpp"

#include <fmt/format.h>

namespace hone {

const std::vector<Fig1Panel>& fig1_panels() {
  static const std::vector<Fig1Panel> panels = {
      {"a", "Gaussian target, Gaussian q", Toy::gaussian, FamilyKind::gaussian},
      {"b", "Mixture target, Gaussian q", Toy::mixture, FamilyKind::gaussian},
      {"c", "Banana target, Gaussian q", Toy::banana, FamilyKind::gaussian},
      {"d", "Banana target, two-component q", Toy::banana, FamilyKind::mixture},
      {"e", "Mixture target, two-component q", Toy::mixture, FamilyKind::mixture},
  };
  return panels;
}

std::string fig1_cell_id(const Fig1Panel& panel, ObjectiveKind objective, int seed) {
  return fmt::format("fig1-{}-{}-seed{}", panel.letter, name_of(objective_names(), objective), seed);
}

ToyConfig fig1_config(const Fig1Panel& panel, ObjectiveKind objective, int seed) {
  ToyConfig config;
  config.target = panel.target;
  config.family = panel.family;
  config.objective.kind = objective;
  config.seed = static_cast<std::uint64_t>(seed);
  resolve(config);
  return config;
}

std::vector<Cell> fig1_cells(int seeds) {
  constexpr double seconds_per_iteration = 2e-6;  // about, with the picture's share
  std::vector<Cell> cells;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const Fig1Panel& panel : fig1_panels())
      for (const ObjectiveKind objective : {ObjectiveKind::kl, ObjectiveKind::vcd}) {
        ToyConfig config = fig1_config(panel, objective, seed);
        const auto run = [config](const RunFolder& folder) { run_toy(config, &folder, nullptr); };
        cells.push_back({.id = fig1_cell_id(panel, objective, seed),
                         .config = toy_settings(config).to_toml(),
                         .run = run,
                         .seconds = seconds_per_iteration * *config.iterations});
      }
  return cells;
}

}  // namespace hone
