#include "bench/calibration/cases.hpp"

#include <cmath>

#include "tests/support/posteriors.hpp"

namespace hone::calibration {

std::vector<Case> examples() {
  std::vector<Case> cases;
  for (const test::KnownPosterior& known : test::known_posteriors()) {
    const auto truth = [known] {
      Truth result;
      for (const auto& [name, r] : test::reference_moments(known))
        result.push_back({.name = name, .centre = r.mean, .spread = r.sd, .error = r.mcse_mean / r.sd});
      return result;
    };
    cases.push_back({.name = known.program,
                     .kind = "examples",
                     .make = [known] { return test::make_known(known); },
                     .how = "reference draws",
                     .truth = truth});
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto kind : {gaussians, shapes, heavy_tails, mixtures, hierarchical, series, regressions, item_response,
                          constrained, curves, improper, examples})
    for (Case& one : kind()) all.push_back(std::move(one));
  return all;
}

}  // namespace hone::calibration
