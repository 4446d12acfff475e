#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/run/second_opinion.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/target/stan.hpp"
#include "python/src/arrays.hpp"
#include "python/src/density.hpp"
#include "python/src/watch.hpp"

namespace hone::python {

// What a fit or a check is about: a density in Python, or a Stan model with the path of its data ("": none). Opened
// when it is first needed, which for a Stan program may mean that it is compiled.
class ModelParts {
 public:
  ModelParts(DensityParts density, std::string name);
  ModelParts(std::string model, std::string data) : model_(std::move(model)), data_(std::move(data)) {}

  // Call it without the GIL. Python is told that a Stan program is compiled, and its Ctrl-C ends the compiler.
  const Posterior& open(Watch& watch, const Stop* stop) const;
  bool in_python() const { return in_python_; }
  const std::string& model() const { return model_; }
  const std::string& data() const { return data_; }

 private:
  bool in_python_ = false;
  std::string model_, data_;
  mutable std::mutex opening_;  // by one thread at a time, without the GIL
  mutable std::unique_ptr<Posterior> posterior_;
};

// The names of the natural-scale values, how many of them are parameters, and the names of the coordinates.
nb::tuple names_of(const ModelParts& parts, const Stop& stop, nb::object tell);

// Installs Stan into the user's cache, from `wheel` ("": pip downloads it), and says which is used from then on.
std::string install(const std::string& wheel, const Stop& stop, nb::object tell);

// Fits, refines and judges. `settings` are those of `hone fit`; `tell` is called with (text, gradients). Returns texts
// and arrays from which Python makes a result, the same as those in a run folder.
nb::dict fit(const ModelParts& parts, const SettingTexts& settings, std::optional<Points> init, Stop& stop,
             nb::object tell);

// Draws that somebody else made: names ("": in the model's own order), values (n, names), log q of each or nothing.
struct DrawsParts {
  GivenDraws draws;
  Scale scale;
};

// A second opinion on draws: refines them and compares.
nb::dict check_draws(const ModelParts& parts, const SettingTexts& settings, const DrawsParts& draws, Stop& stop,
                     nb::object tell);

// Writes what `fit` returned as a run folder.
void save_fit(const std::string& path, const nb::dict& parts, const std::string& verdict, int steps);

// inits_1.json, …, metric.json and arguments.txt for CmdStan. `inverse_metric` is (D, D), or (1, D) for a diagonal one.
void save_warm_start(const std::string& folder, const std::vector<std::string>& names, const Points& inits,
                     const Points& inverse_metric, double step_size);

// What is grossly wrong with a density's gradient at a point z (1, D); "" where nothing is.
std::string gradient_complaint(const ModelParts& parts, const Points& z);

// The table of a fit, from the text of its summary.json: titles, and lines (name, cells, whether it is a parameter); or
// as a text of lines no wider than `width`.
nb::tuple table_of(const std::string& summary, const std::vector<std::string>& show);
std::string table_text(const std::string& summary, const std::vector<std::string>& show, int width);

// The judgement again, from the text of a summary.json, with other tolerances (NaN: those of the fit).
nb::dict judge_again(const std::string& folder, double mean, double sd, double vcd);

// CPU seconds that the engine takes for `calls` evaluations of a batch: for the benchmark of the crossing. The inside
// of a trajectory needs gradients alone.
double time_evaluations(const ModelParts& parts, const Points& z, int calls, bool gradients_alone);

nb::dict dict_of(const Judgement& judgement);
Matrix<double> matrix_of(const Points& points);

}  // namespace hone::python
