#include "python/src/density.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>

#include "python/src/arrays.hpp"

namespace hone::python {
namespace {

// A result that is already what we need: arrays of doubles, no copy.
using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Result {
  Values value;
  Points gradient;
};

bool take(const nb::handle& pair, std::size_t n, std::size_t d, Result& result) {
  if (!nb::isinstance<nb::tuple>(pair) || nb::len(pair) != 2) return false;
  return nb::try_cast(pair[0], result.value, false) && nb::try_cast(pair[1], result.gradient, false) &&
         result.value.shape(0) == n && result.gradient.shape(0) == n && result.gradient.shape(1) == d;
}

}  // namespace

PythonPosterior::PythonPosterior(DensityParts parts) : parts_(std::move(parts)) {}

std::string PythonPosterior::complaint() const {
  const std::lock_guard lock(mutex_);
  return complaint_;
}

void PythonPosterior::look_for_finite(std::span<const double> values) const {
  const std::lock_guard lock(mutex_);
  for (const double value : values) {
    if (std::isfinite(value)) return seen_finite_.store(true);
    complaint_ = std::string("log_density returned ") + (std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  }
}

void PythonPosterior::compute(MatrixView<const double> z, Want want, std::span<double> value,
                              MatrixView<double> gradient) const {
  const nb::gil_scoped_acquire gil;
  if (parts_.batches) return call(z, want, value, gradient);
  for (int i = 0; i < z.cols(); ++i)
    call(z.columns(i, i + 1), want, wants_value(want) ? value.subspan(static_cast<std::size_t>(i), 1) : value,
         wants_gradient(want) ? gradient.columns(i, i + 1) : gradient);
}

// Both results always arrive: what is not wanted is left out here.
void PythonPosterior::call(MatrixView<const double> z, Want want, std::span<double> value,
                           MatrixView<double> gradient) const {
  const auto n = static_cast<std::size_t>(z.cols()), d = static_cast<std::size_t>(z.rows());
  const nb::ndarray<nb::numpy, const double> points =
      parts_.batches ? nb::ndarray<nb::numpy, const double>(z.data(), {n, d}, nb::handle())
                     : nb::ndarray<nb::numpy, const double>(z.data(), {d}, nb::handle());
  nb::object answer =
      parts_.density(parts_.view ? nb::cast(points, nb::rv_policy::reference) : nb::cast(points, nb::rv_policy::copy));
  Result result;
  if (!parts_.batches || !take(answer, n, d, result)) {
    answer = parts_.convert(answer, n, d, parts_.batches);
    if (!take(answer, n, d, result)) throw std::logic_error("the density's result was not converted");
  }
  if (!seen_finite_.load(std::memory_order_relaxed)) look_for_finite({result.value.data(), n});
  if (wants_value(want)) std::copy_n(result.value.data(), n, value.begin());
  if (wants_gradient(want)) std::copy_n(result.gradient.data(), n * d, gradient.data());
}

void PythonPosterior::constrain(std::span<const double> z, std::span<double> natural) const {
  if (parts_.constrain.is_none()) {
    std::copy(z.begin(), z.end(), natural.begin());
    return;
  }
  const nb::gil_scoped_acquire gil;
  const nb::ndarray<nb::numpy, const double> point(z.data(), {1, z.size()}, nb::handle());
  const nb::object answer = parts_.constrain(nb::cast(point, nb::rv_policy::copy));
  Points values;
  if (!nb::try_cast(answer, values, false) || values.shape(0) != 1 || values.shape(1) != natural.size())
    throw std::logic_error("constrain's result was not converted");
  std::copy_n(values.data(), natural.size(), natural.begin());
}

}  // namespace hone::python
