#pragma once

#include <concepts>
#include <exception>
#include <span>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/target.hpp"

namespace hone {

// A user's own density: takes a point, writes the gradient of the log density there, returns the log density.
// It may be called from several threads at once; an exception means that the point lies outside the support.
template <class F>
concept LogDensity = requires(const F& f, std::span<const double> z, std::span<double> gradient) {
  { f(z, gradient) } -> std::convertible_to<double>;
};

// Any such callable as a target:
//   DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) { … });
template <LogDensity F>
class DensityTarget final : public Target {
 public:
  DensityTarget(int dimension, F density) : dimension_(dimension), density_(std::move(density)) {
    if (dimension < 1) throw InputError("the dimension of a density must be at least 1");
  }
  int dimension() const override { return dimension_; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    // The callable always writes a gradient. The memory is taken out while in use: a density may call another one.
    thread_local std::vector<double> spare;
    std::vector<double> unwanted;
    if (!wants_gradient(want)) {
      unwanted = std::exchange(spare, {});
      unwanted.resize(dimension_);
    }
    for (int chain = 0; chain < z.cols(); ++chain) {
      const std::span<double> slope = wants_gradient(want) ? gradient.column(chain) : std::span<double>(unwanted);
      double result = -infinity;
      try {
        result = density_(z.column(chain), slope);
      } catch (const std::exception&) {
        std::fill(slope.begin(), slope.end(), 0.0);
      }
      if (wants_value(want)) value[chain] = result;
    }
    if (!wants_gradient(want)) spare = std::move(unwanted);
  }

 private:
  int dimension_;
  F density_;
};

}  // namespace hone
