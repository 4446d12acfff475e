#include <algorithm>
#include <vector>

#include "hone/base/scalar.hpp"
#include "hone/family/normal.hpp"
#include "hone/latent/amortized_family.hpp"

namespace hone {
namespace {

// Numbers of scratch memory per thread: 0 for the whitened point, 1 for its preconditioned form.
template <int which>
std::span<double> scratch(int dimension) {
  thread_local std::vector<double> storage;
  storage.resize(dimension);
  return storage;
}

Normal normal_of(const AmortizedParameters& q, int c) {
  return {Covariance::diagonal, q.location.column(c), q.scale.column(c)};
}

NormalGradient gradient_of(const AmortizedGradient& gradient, int c) {
  return {Covariance::diagonal, gradient.location.column(c), gradient.scale.column(c)};
}

}  // namespace

void DiagonalGaussian::draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const {
  for (int c = 0; c < q.count(); ++c) normal_of(q, c).colour(noise.column(c), z.column(c));
}

void DiagonalGaussian::log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want,
                                   std::span<double> value, MatrixView<double> gradient) const {
  for (int c = 0; c < q.count(); ++c) {
    const std::span<double> u = scratch<0>(z.rows());
    const Normal normal = normal_of(q, c);
    normal.whiten(z.column(c), u);
    if (wants_value(want)) {
      double quadratic = 0;
      for (const double x : u) quadratic += square(x);
      value[c] = -0.5 * quadratic - normal.log_normalizer();  // eq2:gaussian_pdf
    }
    if (wants_gradient(want)) {
      normal.precondition(u, gradient.column(c));
      for (double& x : gradient.column(c)) x = -x;
    }
  }
}

void DiagonalGaussian::add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise,
                                    MatrixView<const double> dz, std::span<const double> coefficient,
                                    const AmortizedGradient& gradient) const {
  for (int c = 0; c < q.count(); ++c)
    gradient_of(gradient, c).add_pathwise(coefficient[c], dz.column(c), noise.column(c));
}

void DiagonalGaussian::add_score(const AmortizedParameters& q, MatrixView<const double> z,
                                 std::span<const double> coefficient, const AmortizedGradient& gradient) const {
  for (int c = 0; c < q.count(); ++c) {
    const std::span<double> u = scratch<0>(z.rows()), v = scratch<1>(z.rows());
    const Normal normal = normal_of(q, c);
    normal.whiten(z.column(c), u);
    normal.precondition(u, v);
    gradient_of(gradient, c).add_score(coefficient[c], normal, u, v);
  }
}

void DiagonalGaussian::add_draw_score(const AmortizedParameters& q, MatrixView<const double> noise,
                                      MatrixView<const double>, std::span<const double> coefficient,
                                      const AmortizedGradient& gradient) const {
  for (int c = 0; c < q.count(); ++c) {
    const std::span<double> v = scratch<1>(noise.rows());
    const Normal normal = normal_of(q, c);
    normal.precondition(noise.column(c), v);  // the noise is the whitened draw
    gradient_of(gradient, c).add_score(coefficient[c], normal, noise.column(c), v);
  }
}

void DiagonalGaussian::log_normalizer(const AmortizedParameters& q, std::span<double> out) const {
  for (int c = 0; c < q.count(); ++c) out[c] = normal_of(q, c).log_normalizer();
}

void DiagonalGaussian::add_entropy_gradient(const AmortizedParameters& q, std::span<const double> coefficient,
                                            const AmortizedGradient& gradient) const {
  for (int c = 0; c < q.count(); ++c) gradient_of(gradient, c).add_log_normalizer(coefficient[c], normal_of(q, c));
}

void DiagonalGaussian::moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const {
  std::ranges::copy(q.location.flat(), mean.flat().begin());
  std::ranges::copy(q.scale.flat(), sd.flat().begin());
}

}  // namespace hone
