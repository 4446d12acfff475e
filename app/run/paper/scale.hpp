#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/run/paper/paper_figures.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// How much of the paper's work is done: to see that everything works, to see something, all of it.
enum class Scale { smoke, brief, full };

// What a scale means for each experiment.
struct ScaleSettings {
  int seeds;                        // of table1 and fig2
  std::uint32_t table1_iterations;  // of a training
  std::uint32_t fig2_iterations;
  EvaluationConfig evaluation;
  std::optional<AnnealingConfig> annealing;  // of Table 1's cells besides
  int fig1_seeds;
  std::uint32_t fig3_iterations;  // timed, of each point
  int toy_seeds;                  // of a claim that is tried on toys
  std::uint32_t toy_iterations;
  int gradient_draws;  // of the gradient's variance
  int training_seeds;  // of a claim that is tried by training
  std::uint32_t claim_training_iterations;
  std::uint32_t claim_timed_iterations;  // of each objective
};
ScaleSettings settings_of(Scale scale);

std::string name_of(Scale scale);            // "smoke", "short", "full"
Scale scale_named(const std::string& name);  // InputError

}  // namespace hone
