#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// A posterior over unconstrained coordinates z in R^D, with its parameters on their natural scale.
class Posterior : public Target {
 public:
  /// Names of the natural-scale values, transformed parameters included, in Stan's CSV form: "mu", "theta.1", "K.2.3".
  virtual const std::vector<std::string>& names() const = 0;
  /// Writes the names().size() natural-scale values of one point z (D). They may be NaN. Throws Error if the model
  /// throws.
  virtual void constrain(std::span<const double> z, std::span<double> natural) const = 0;
  /// The point z (D) whose natural-scale values begin with these parameter_count() ones. Throws InputError if the model
  /// cannot say, or refuses the values.
  virtual void unconstrain(std::span<const double>, std::span<double>) const {
    throw InputError("this model cannot map values on the natural scale to its unconstrained coordinates");
  }
  /// Names of the unconstrained coordinates (D).
  virtual const std::vector<std::string>& coordinate_names() const = 0;
  /// How many of names() are the model's parameters. They come first; transformed parameters and generated quantities
  /// follow.
  virtual std::size_t parameter_count() const = 0;
  /// The model's message when it first rejected a point; empty if it has not, or gave none.
  virtual std::string complaint() const { return {}; }
};

/// What the unconstrained coordinates are, in words, found from points z (one per column): "mu" where the coordinate is
/// the value of that name itself, "log tau", "logit p", "unconstrained theta.1" (also where a variable theta has no
/// value of that name), or the coordinate's own name if nothing is called so.
std::vector<std::string> coordinate_words(const Posterior& posterior, MatrixView<const double> z);

/// The natural-scale values (names, n) of points z, one per column; NaN where the model refuses.
Matrix<double> natural_values(const Posterior& posterior, MatrixView<const double> z);

}  // namespace hone
