#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// Table 1 of the paper (tab:results_llh): the test log-likelihood of two models on two data sets by three objectives,
// after 400,000 iterations each, with the best of three proposals per datum.
struct PaperCell {
  std::string model, data, objective;  // as a configuration names them
  double log_likelihood;
};
inline constexpr std::uint32_t paper_iterations = 400000;
const std::vector<PaperCell>& paper_cells();

}  // namespace hone
