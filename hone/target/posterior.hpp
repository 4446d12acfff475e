#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hone/target/target.hpp"

namespace hone {

// A posterior over unconstrained coordinates z in R^D, with its parameters on their natural scale.
class Posterior : public Target {
 public:
  // Names of the natural-scale values, transformed parameters included, in Stan's CSV form: "mu", "theta.1", "K.2.3".
  virtual const std::vector<std::string>& names() const = 0;
  // Natural-scale values of one point z (D): writes names().size() values. Throws Error where the model does;
  // values may be NaN.
  virtual void constrain(std::span<const double> z, std::span<double> natural) const = 0;
  // Names of the unconstrained coordinates (D).
  virtual const std::vector<std::string>& coordinate_names() const = 0;
  // How many of names() are parameters proper (they come first); the rest are transformed parameters and generated
  // quantities.
  virtual std::size_t parameter_count() const = 0;
  // What the model said when it first refused a point; empty where it has not, or says nothing.
  virtual std::string complaint() const { return {}; }
};

}  // namespace hone
