#pragma once

#include <string>
#include <vector>

#include "app/report/curves.hpp"
#include "app/report/facts.hpp"

namespace hone {

// A figure of a section's runs over their iterations, with its description and caption.
struct LearningCurve {
  CurveFigure figure;
  std::string alternative, caption;
};

// ELBO, VCD, validation and test log-likelihood, acceptance and step size, as far as the runs have them. File names end
// in `suffix`.
std::vector<LearningCurve> learning_curves(const Section& section, const std::string& suffix);

}  // namespace hone
