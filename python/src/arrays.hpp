#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/run/settings.hpp"
#include "hone/tensor/matrix.hpp"

// What the sources of the module share: NumPy arrays, settings as pairs of texts.
namespace hone::python {

namespace nb = nanobind;

using Points = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (n, D): a point per row

// A NumPy array of any shape that owns what `values` held, last index fastest.
template <class T>
nb::object array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape, owner));
}

inline nb::object array_of(std::vector<double> values) {
  const std::size_t size = values.size();
  return array_of(std::move(values), {size});
}

// A matrix with one point per column is an array with one point per row.
inline nb::object array_of(Matrix<double> matrix) {
  auto* kept = new Matrix<double>(std::move(matrix));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Matrix<double>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double>(
      kept->view().data(), {static_cast<std::size_t>(kept->cols()), static_cast<std::size_t>(kept->rows())}, owner));
}

inline MatrixView<const double> view_of(const Points& points) {
  return {points.data(), static_cast<int>(points.shape(1)), static_cast<int>(points.shape(0))};
}

// Keys and texts, as a configuration file has them.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

// Reads them into a table; messages name the argument.
inline void apply(Settings& settings, const SettingTexts& texts) {
  for (const auto& [key, text] : texts) settings.set(key, text, key);
}

}  // namespace hone::python
