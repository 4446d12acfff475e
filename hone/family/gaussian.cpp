#include "hone/family/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Two vectors of D numbers for the whitened point and its preconditioned form; grown once per thread.
struct Scratch {
  explicit Scratch(int dimension) {
    thread_local std::vector<double> storage;
    const auto size = static_cast<std::size_t>(dimension);
    storage.resize(2 * size);
    u = std::span(storage).first(size);
    v = std::span(storage).last(size);
  }
  std::span<double> u, v;
};

// The cheapest form of q for this number of points. If its Cholesky factor is diagonal, as after a change of
// coordinates, the standard deviations suffice: D operations per point instead of D² / 2. The memory is the thread's.
Normal simplest(const Normal& q, int points) {
  thread_local std::vector<double> sd;
  if (q.covariance == Covariance::diagonal || points < 16) return q;
  sd.resize(q.mean.size());
  for (std::size_t i = 0; i < sd.size(); ++i) {
    const auto row = q.scale.subspan(packed(i, 0), i);
    if (!std::ranges::all_of(row, [](double x) { return x == 0; })) return q;
    sd[i] = q.scale[packed(i, i)];
  }
  return {Covariance::diagonal, q.mean, sd};
}

// ∇_z log q where u is the whitened z
void minus_precision(const Normal& q, std::span<const double> u, std::span<double> gradient) {
  q.precondition(u, gradient);
  for (double& x : gradient) x = -x;
}

}  // namespace

GaussianFamily::GaussianFamily(int dimension, Covariance covariance) : Family(dimension), covariance_(covariance) {
  add_slice("mean", Role::location, dimension);
  add_slice("scale", Role::scale, Normal::scale_size(covariance, dimension));
  set_isotropic(covariance, 1, scale());
}

Normal GaussianFamily::normal() const {
  const auto size = static_cast<std::size_t>(dimension());
  return {covariance_, parameters().first(size), parameters().subspan(size)};
}

NormalGradient GaussianFamily::split(std::span<double> gradient) const {
  const auto size = static_cast<std::size_t>(dimension());
  return {covariance_, gradient.first(size), gradient.subspan(size)};
}

void GaussianFamily::draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
                          std::uint32_t first_datum) const {
  const Normal q = simplest(normal(), draws.count());
  for (int chain = 0; chain < draws.count(); ++chain) {
    const auto datum = first_datum + static_cast<std::uint32_t>(chain);
    random.normals({Purpose::draw, iteration, datum}, draws.noise.column(chain));
    q.colour(draws.noise.column(chain), draws.z.column(chain));
  }
  std::fill(draws.weight.begin(), draws.weight.end(), 1.0 / draws.count());
}

void GaussianFamily::log_density(MatrixView<const double> z, Want want, std::span<double> value,
                                 MatrixView<double> gradient) const {
  const Normal q = simplest(normal(), z.cols());
  const Scratch scratch(dimension());
  const double log_normalizer = wants_value(want) ? q.log_normalizer() : 0;
  for (int chain = 0; chain < z.cols(); ++chain) {
    q.whiten(z.column(chain), scratch.u);
    if (wants_value(want)) value[chain] = -0.5 * dot(scratch.u, scratch.u) - log_normalizer;  // eq2:gaussian_pdf
    if (wants_gradient(want)) minus_precision(q, scratch.u, gradient.column(chain));
  }
}

void GaussianFamily::log_density_at(const Draws& draws, Want want, std::span<double> value,
                                    MatrixView<double> gradient) const {
  const Normal q = normal();
  const double log_normalizer = wants_value(want) ? q.log_normalizer() : 0;
  for (int chain = 0; chain < draws.count(); ++chain) {
    const std::span<const double> u = draws.noise.column(chain);
    if (wants_value(want)) value[chain] = -0.5 * dot(u, u) - log_normalizer;
    if (wants_gradient(want)) minus_precision(q, u, gradient.column(chain));
  }
}

void GaussianFamily::add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                                  std::span<double> gradient) const {
  const NormalGradient slices = split(gradient);
  for (int chain = 0; chain < draws.count(); ++chain)
    slices.add_pathwise(coefficient[chain], dz.column(chain), draws.noise.column(chain));
}

void GaussianFamily::add_score(MatrixView<const double> z, std::span<const double> coefficient,
                               std::span<double> gradient) const {
  const Normal q = normal();
  const NormalGradient slices = split(gradient);
  const Scratch scratch(dimension());
  for (int chain = 0; chain < z.cols(); ++chain) {
    q.whiten(z.column(chain), scratch.u);
    q.precondition(scratch.u, scratch.v);
    slices.add_score(coefficient[chain], q, scratch.u, scratch.v);
  }
}

void GaussianFamily::add_draw_score(const Draws& draws, std::span<const double> coefficient,
                                    std::span<double> gradient) const {
  const Normal q = normal();
  const NormalGradient slices = split(gradient);
  const Scratch scratch(dimension());
  for (int chain = 0; chain < draws.count(); ++chain) {
    const std::span<const double> u = draws.noise.column(chain);  // a draw comes whitened
    q.precondition(u, scratch.v);
    slices.add_score(coefficient[chain], q, u, scratch.v);
  }
}

void GaussianFamily::add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const {
  split(gradient).add_log_normalizer(std::accumulate(coefficient.begin(), coefficient.end(), 0.0), normal());
}

void GaussianFamily::project() { floor_scale(covariance_, scale()); }

std::vector<std::size_t> GaussianFamily::positive_parameters() const {
  std::vector<std::size_t> result;
  append_positive(covariance_, dimension(), static_cast<std::size_t>(dimension()), result);
  return result;
}

std::optional<LocationScale> GaussianFamily::standardize() {
  LocationScale result{covariance_, {mean().begin(), mean().end()}, {scale().begin(), scale().end()}};
  std::ranges::fill(mean(), 0.0);
  set_isotropic(covariance_, 1, scale());
  return result;
}

void GaussianFamily::moments(std::span<double> mean, std::span<double> sd) const {
  const Normal q = normal();
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = q.mean[i];
    sd[i] = std::sqrt(q.variance(i));
  }
}

}  // namespace hone
