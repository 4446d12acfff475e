#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/run/paper/paper_figures.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// How much of the paper's work to do: enough to see that everything works, enough to see a trend, or all of it.
enum class Scale { smoke, brief, full };

// What a scale means for each experiment.
struct ScaleSettings {
  int seeds;                        // for table1 and fig2
  std::uint32_t table1_iterations;  // per training
  std::uint32_t fig2_iterations;
  EvaluationConfig evaluation;
  std::optional<AnnealingConfig> annealing;  // also, for the cells of Table 1
  int fig1_seeds;
  std::uint32_t fig3_iterations;  // timed per point
  int toy_seeds;                  // for claims tested on toys
  std::uint32_t toy_iterations;
  int gradient_draws;  // for the variance of the gradient
  int training_seeds;  // for claims tested by training
  std::uint32_t claim_training_iterations;
  std::uint32_t claim_timed_iterations;  // per objective
};
ScaleSettings settings_of(Scale scale);

std::string name_of(Scale scale);            // "smoke", "short", "full"
Scale scale_named(const std::string& name);  // throws InputError

}  // namespace hone
