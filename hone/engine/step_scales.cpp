#include "hone/engine/step_scales.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/engine/config.hpp"

namespace hone {
namespace {

void multiply(std::span<const double> scales, MatrixView<double> points) {
  for (int c = 0; c < points.cols(); ++c)
    for (int d = 0; d < points.rows(); ++d) points(d, c) *= scales[d];
}

void divide(std::span<const double> scales, MatrixView<double> points) {
  for (int c = 0; c < points.cols(); ++c)
    for (int d = 0; d < points.rows(); ++d) points(d, c) /= scales[d];
}

}  // namespace

std::vector<double> step_scales(MatrixView<const double> sd) {
  std::vector<double> scales(sd.rows());
  for (int c = 0; c < sd.cols(); ++c)
    for (int d = 0; d < sd.rows(); ++d) scales[d] += square(sd(d, c));
  const double least = *std::ranges::min_element(scales);
  for (double& scale : scales) scale = std::min(std::sqrt(scale / least), widest_step);
  return scales;
}

void ScaledTarget::to_scaled(MatrixView<double> z, MatrixView<double> gradient) const {
  divide(scales_, z);
  multiply(scales_, gradient);
}

void ScaledTarget::from_scaled(MatrixView<double> u, MatrixView<double> gradient) const {
  multiply(scales_, u);
  divide(scales_, gradient);
}

void ScaledTarget::compute_data(MatrixView<const double> u, Want want, std::span<double> value,
                                MatrixView<double> gradient, std::span<const std::uint32_t> datum) const {
  thread_local Matrix<double> memory;
  if (memory.rows() != u.rows() || memory.cols() < u.cols()) memory = Matrix<double>(u.rows(), u.cols());
  const MatrixView<double> z = memory.view().columns(0, u.cols());
  for (int c = 0; c < u.cols(); ++c)
    for (int d = 0; d < u.rows(); ++d) z(d, c) = u(d, c) * scales_[d];
  target_.evaluate(z, want, value, gradient, datum);
  if (wants_gradient(want)) multiply(scales_, gradient);
}

}  // namespace hone
