#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "hone/assess/verdict.hpp"
#include "hone/target/stan.hpp"
#include "python/src/arrays.hpp"
#include "python/src/density.hpp"
#include "python/src/watch.hpp"

namespace hone::python {

// What a fit or a check is about: a density in Python, or a Stan model with the path of its data ("": none).
struct ModelParts {
  std::optional<DensityParts> density;
  std::string model, data;
};

std::unique_ptr<Posterior> open(const ModelParts& parts, const StanOptions& options);

// How a Stan program is compiled: Python is told, and its Ctrl-C ends the compiler.
StanOptions compiling(Watch& watch, const Stop& stop);

// Fits, refines and judges. `settings` are those of `hone fit`; `tell` is called with (text, gradients). Returns texts
// and arrays from which Python makes a result, the same as those in a run folder.
nb::dict fit(const ModelParts& parts, const SettingTexts& settings, std::optional<Points> init, Stop& stop,
             nb::object tell);

// A second opinion on draws (n, D) over the unconstrained coordinates: refines them and compares.
nb::dict check_draws(const ModelParts& parts, const SettingTexts& settings, const Points& draws, Stop& stop,
                     nb::object tell);

// Writes what `fit` returned as a run folder.
void save_fit(const std::string& path, const nb::dict& parts, const std::string& verdict, int steps);

// inits_1.json, …, metric.json and arguments.txt for CmdStan. `inverse_metric` is (D, D), or (1, D) for a diagonal one.
void save_warm_start(const std::string& folder, const std::vector<std::string>& names, const Points& inits,
                     const Points& inverse_metric, double step_size);

// The judgement again, from the text of a summary.json, with other tolerances (NaN: those of the fit).
nb::dict judge_again(const std::string& folder, double mean, double sd, double vcd);

// Seconds that the engine takes for `calls` evaluations of a batch: for the benchmark of the crossing. The inside of a
// trajectory needs gradients alone.
double time_evaluations(const ModelParts& parts, const Points& z, int calls, bool gradients_alone);

nb::dict dict_of(const Judgement& judgement);

}  // namespace hone::python
