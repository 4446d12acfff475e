#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/report/table1.hpp"
#include "app/run/paper/claims.hpp"

namespace hone {

// The cells of all claims.
struct ClaimCells {
  std::vector<ToyRun> alpha, li2017;
  std::vector<GradientPoint> gradient;
  LocalBaselineCells local;
  std::vector<SecondsPoint> seconds;
};

enum class ClaimVerdict { holds, does_not_hold, undecided };
std::string name_of(ClaimVerdict verdict);

// Whether a quantity, given by independent values, lies above a margin. It is decided if the mean is further from the
// margin than Student's t allows by chance at 99 %. Undecided with fewer than two values.
ClaimVerdict judge_above(const Moments& values, double margin);

// Divergences between q = N(mean, diag(sd²)) and the Gaussian toy, in closed form.
struct ToyDivergences {
  double of_q = 0;  // KL(q ‖ p)
  double of_p = 0;  // KL(p ‖ q)
};
ToyDivergences gaussian_toy_divergences(std::span<const double> mean, std::span<const double> sd);

// Reads the cells' results and writes claims.md: for each claim what the paper says, the experiment, a table with error
// bars, the criterion and the verdict.
std::string report_claims(const ClaimCells& cells, const ReportContext& context);

}  // namespace hone
