#pragma once

#include <string>
#include <vector>

#include "app/run/second_opinion.hpp"

namespace hone {

// `hone check --draws`: a second opinion on draws that another tool made.
struct DrawsRequest {
  PosteriorRunConfig config;  // model, data, and the settings of opinion_settings
  std::vector<std::string> draws = {};
  Scale scale = Scale::natural;
  std::string out = {};                // folder for the refined draws; empty: none
  std::vector<std::string> show = {};  // values that the table shows; none: the usual ones
  bool json = false, quiet = false;
};

PosteriorRunConfig with_all_threads();

// Prints the verdict and ends with its exit code.
void check_draws(DrawsRequest& request);

// Throws Ended with the verdict's exit code, unless that is 0.
void end_with(Verdict verdict);

}  // namespace hone
