#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hone/target/posterior.hpp"

namespace hone::python {

namespace nb = nanobind;

// What Python says of a density of its own.
struct DensityParts {
  nb::object density;    // batches: (n, D) → (n,), (n, D); otherwise (D,) → value, (D,)
  bool batches = false;  // whether it takes batches
  bool view = false;     // whether it may see our own memory: it must not keep its argument
  nb::object convert;    // (result, n, D, batches) → arrays of doubles; called where a result is not that already
  nb::object constrain;  // (n, D) → (n, names); None: the coordinates are the parameters
  std::vector<std::string> coordinates, names;
  std::size_t parameters = 0;  // how many of the names are parameters
};

// A density in Python as a posterior. Every call takes the GIL, on whatever thread. An exception in Python ends the fit
// and arrives unchanged.
class PythonPosterior final : public Posterior {
 public:
  explicit PythonPosterior(DensityParts parts);
  int dimension() const override { return static_cast<int>(parts_.coordinates.size()); }
  const std::vector<std::string>& names() const override { return parts_.names; }
  const std::vector<std::string>& coordinate_names() const override { return parts_.coordinates; }
  std::size_t parameter_count() const override { return parts_.parameters; }
  std::string complaint() const override;
  int good_batch() const override { return parts_.batches ? 1 << 20 : 1; }  // a call costs more than a point
  void constrain(std::span<const double> z, std::span<double> natural) const override;

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  nb::object points(MatrixView<const double> z) const;
  void call(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient) const;
  void look_for_finite(std::span<const double> values, std::span<const double> gradients) const;

  DensityParts parts_;
  mutable std::mutex mutex_;
  mutable std::string complaint_;
  mutable nb::object seen_;  // the last view of our memory, guarded by the GIL
  mutable std::pair<const double*, std::size_t> seen_at_;
  mutable std::atomic<bool> seen_finite_ = false;  // then there is nothing to complain of
};

}  // namespace hone::python
