#include "app/run/paper/scale.hpp"

#include <fmt/format.h>

#include "hone/base/error.hpp"

namespace hone {

ScaleSettings settings_of(Scale scale) {
  ScaleSettings s{};  // starts with the paper's evaluation on all test data
  switch (scale) {
    case Scale::smoke:
      s.evaluation.samples = 100;
      s.evaluation.burn_in = s.evaluation.kept = 10;
      s.evaluation.points = 50;
      s.annealing = AnnealingConfig{.steps = 10, .chains = 2};
      s.seeds = 1;
      s.table1_iterations = 8;
      s.fig2_iterations = 3;
      s.fig1_seeds = 2;
      s.fig3_iterations = 3;
      s.toy_seeds = 3;
      s.toy_iterations = 500;
      s.gradient_draws = 400;
      s.training_seeds = 2;
      s.claim_training_iterations = 20;
      s.claim_timed_iterations = 6;
      return s;
    case Scale::brief:
      s.evaluation.samples = 2000;
      s.evaluation.points = 500;
      s.seeds = 1;
      s.table1_iterations = 12000;
      s.fig2_iterations = 3000;
      s.fig1_seeds = 8;
      s.fig3_iterations = 200;
      s.toy_seeds = 16;
      s.toy_iterations = 20000;
      s.gradient_draws = 40000;
      s.training_seeds = 5;
      s.claim_training_iterations = 6000;
      s.claim_timed_iterations = 200;
      return s;
    case Scale::full:
      s.annealing = AnnealingConfig();
      s.seeds = 3;
      s.table1_iterations = s.fig2_iterations = paper_iterations;
      s.fig1_seeds = 8;
      s.fig3_iterations = 2000;
      s.toy_seeds = 64;
      s.toy_iterations = 20000;
      s.gradient_draws = 400000;
      s.training_seeds = 8;
      s.claim_training_iterations = 20000;
      s.claim_timed_iterations = 2000;
      return s;
  }
  throw Error("unknown scale");
}

std::string name_of(Scale scale) { return scale == Scale::smoke ? "smoke" : scale == Scale::brief ? "short" : "full"; }

Scale scale_named(const std::string& name) {
  for (const Scale scale : {Scale::smoke, Scale::brief, Scale::full})
    if (name == name_of(scale)) return scale;
  throw InputError(fmt::format("--scale: '{}' is not allowed; expected smoke, short or full", name));
}

}  // namespace hone
