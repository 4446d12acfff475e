#include "python/src/density.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "hone/base/error.hpp"
#include "python/src/arrays.hpp"
#include "python/src/watch.hpp"

namespace hone::python {
namespace {

// An array of doubles, seen where it is by Python's buffer protocol: a fifth of a microsecond for NumPy's arrays. JAX's
// have it too, but take three: from_jax makes them NumPy's first.
class Doubles {
 public:
  Doubles() = default;
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;
  ~Doubles() {
    if (held_) PyBuffer_Release(&view_);
  }

  // Whether the object is such an array, in C order and of this shape.
  bool take(const nb::handle& object, std::initializer_list<std::size_t> shape) {
    if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();  // the slower way says what is wrong
      return false;
    }
    held_ = true;
    return view_.format != nullptr && std::string_view(view_.format) == "d" &&
           std::equal(
               shape.begin(), shape.end(), view_.shape, view_.shape + view_.ndim,
               [](std::size_t expected, Py_ssize_t found) { return static_cast<Py_ssize_t>(expected) == found; });
  }

  const double* data() const { return static_cast<const double*>(view_.buf); }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

// What a density returned, if it is already what we need. What is not wanted is not looked at.
struct Result {
  Want want;
  Doubles values, gradient;
  double number = 0;  // of a single point
  bool is_number = false;

  const double* value() const { return is_number ? &number : values.data(); }
  bool take_batch(const nb::handle& pair, std::size_t n, std::size_t d) {
    return is_pair(pair) && (!wants_value(want) || values.take(pair[0], {n})) &&
           (!wants_gradient(want) || gradient.take(pair[1], {n, d}));
  }
  bool take_point(const nb::handle& pair, std::size_t d) {
    if (!is_pair(pair)) return false;
    const nb::object first = pair[0];
    is_number = PyFloat_Check(first.ptr());
    if (is_number) number = PyFloat_AsDouble(first.ptr());
    return (is_number || values.take(first, {})) && gradient.take(pair[1], {d});
  }
  static bool is_pair(const nb::handle& pair) { return nb::isinstance<nb::tuple>(pair) && nb::len(pair) == 2; }
};

}  // namespace

PythonPosterior::PythonPosterior(DensityParts parts) : parts_(std::move(parts)) {}

std::string PythonPosterior::complaint() const {
  const std::lock_guard lock(mutex_);
  return complaint_;
}

// Until a point has a finite value and gradient, there is something to say of each.
void PythonPosterior::look_for_finite(std::span<const double> values, std::span<const double> gradients) const {
  const std::lock_guard lock(mutex_);
  const std::size_t d = gradients.size() / values.size();
  const auto finite = [](double x) { return std::isfinite(x); };
  const auto shown = [](double x) { return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::span<const double> gradient = gradients.subspan(i * d, d);
    const auto bad = std::ranges::find_if_not(gradient, finite);
    if (!finite(values[i])) {
      complaint_ = std::string("log_density returned ") + shown(values[i]);
    } else if (bad != gradient.end()) {
      complaint_ = std::string("log_density returned a gradient with ") + shown(*bad) + " in it";
    } else {
      return seen_finite_.store(true);
    }
  }
}

void PythonPosterior::compute(MatrixView<const double> z, Want want, std::span<double> value,
                              MatrixView<double> gradient) const {
  if (leaving) throw Stopped();
  const nb::gil_scoped_acquire gil;
  if (parts_.batches) return call(z, want, value, gradient);
  for (int i = 0; i < z.cols(); ++i)
    call(z.columns(i, i + 1), want, wants_value(want) ? value.subspan(static_cast<std::size_t>(i), 1) : value,
         wants_gradient(want) ? gradient.columns(i, i + 1) : gradient);
}

// The points as an array of NumPy's: our own memory, or a copy for a density that may keep it. A fit evaluates at the
// same places again and again, so the last view is kept.
nb::object PythonPosterior::points(MatrixView<const double> z) const {
  const auto n = static_cast<std::size_t>(z.cols()), d = static_cast<std::size_t>(z.rows());
  if (seen_.is_valid() && seen_at_ == std::pair(z.data(), n)) return seen_;
  const nb::ndarray<nb::numpy, const double> points =
      parts_.batches ? nb::ndarray<nb::numpy, const double>(z.data(), {n, d}, nb::handle())
                     : nb::ndarray<nb::numpy, const double>(z.data(), {d}, nb::handle());
  if (!parts_.view) return nb::cast(points, nb::rv_policy::copy);
  seen_ = nb::cast(points, nb::rv_policy::reference);
  seen_at_ = {z.data(), n};
  return seen_;
}

// Both results always arrive; which are used is decided here. The first ones are looked at whole.
void PythonPosterior::call(MatrixView<const double> z, Want want, std::span<double> value,
                           MatrixView<double> gradient) const {
  const auto n = static_cast<std::size_t>(z.cols()), d = static_cast<std::size_t>(z.rows());
  const bool looking = !seen_finite_.load(std::memory_order_relaxed);
  nb::object answer = parts_.density(points(z));
  std::optional<Result> result(std::in_place, looking ? Want::both : want);
  if (parts_.batches ? !result->take_batch(answer, n, d) : !result->take_point(answer, d)) {
    answer = parts_.convert(answer, n, d, parts_.batches);
    result.emplace(Want::both);
    if (!result->take_batch(answer, n, d)) throw std::logic_error("the density's result was not converted");
  }
  if (looking) look_for_finite({result->value(), n}, {result->gradient.data(), n * d});
  if (wants_value(want)) std::copy_n(result->value(), n, value.begin());
  if (wants_gradient(want)) std::copy_n(result->gradient.data(), n * d, gradient.data());
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
