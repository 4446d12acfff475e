#include "app/run/paper/paper_figures.hpp"

namespace hone {

const std::vector<PaperCell>& paper_cells() {
  static const std::vector<PaperCell> cells = {
      {"logistic-mf", "mnist", "kl", -111.20},
      {"logistic-mf", "mnist", "hoffman", -103.61},
      {"logistic-mf", "mnist", "vcd", -101.26},
      {"logistic-mf", "fashion-mnist", "kl", -127.43},
      {"logistic-mf", "fashion-mnist", "hoffman", -121.86},
      {"logistic-mf", "fashion-mnist", "vcd", -121.11},
      {"vae", "mnist", "kl", -98.46},
      {"vae", "mnist", "hoffman", -96.23},
      {"vae", "mnist", "vcd", -95.86},
      {"vae", "fashion-mnist", "kl", -124.63},
      {"vae", "fashion-mnist", "hoffman", -117.74},
      {"vae", "fashion-mnist", "vcd", -117.65},
  };
  return cells;
}

}  // namespace hone
