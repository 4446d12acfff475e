#include "hone/latent/amortized_family.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// D numbers of scratch memory per thread: 0 for the whitened point, 1 for its preconditioned form.
template <int which>
std::span<double> scratch(int dimension) {
  thread_local std::vector<double> storage;
  storage.resize(dimension);
  return storage;
}

}  // namespace

AmortizedFamily::AmortizedFamily(int dimension, int count, Team* team)
    : Family(dimension), count_(count), end_(count), team_(team) {
  if (count < 1) throw InputError("a minibatch needs at least one datum");
  const std::size_t size = static_cast<std::size_t>(dimension) * static_cast<std::size_t>(count);
  add_slice("mean", Role::location, size);
  add_slice("sd", Role::scale, size);
  std::ranges::fill(sd().flat(), 1.0);
}

template <class Do>
void AmortizedFamily::for_data(Do&& work) const {
  const auto share = [&](int begin, int end, int) {
    for (int c = begin_ + begin; c < begin_ + end; ++c) work(c);
  };
  if (team_)
    team_->for_shares(end_ - begin_, share);
  else
    share(0, end_ - begin_, 0);
}

void AmortizedFamily::restrict_to(int begin, int end) {
  begin_ = begin;
  end_ = end;
}

AmortizedFamily::Halves AmortizedFamily::split(std::span<double> all) const {
  return {{all.data(), dimension(), count_}, {all.data() + all.size() / 2, dimension(), count_}};
}

Normal AmortizedFamily::normal(int datum) const {
  const std::span<const double> all = parameters();
  const auto size = static_cast<std::size_t>(dimension());
  const auto offset = size * static_cast<std::size_t>(datum);
  return {Covariance::diagonal, all.subspan(offset, size), all.subspan(all.size() / 2 + offset, size)};
}

NormalGradient AmortizedFamily::gradient_of(int datum, std::span<double> gradient) const {
  const Halves halves = split(gradient);
  return {Covariance::diagonal, halves.mean.column(datum), halves.sd.column(datum)};
}

void AmortizedFamily::draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
                           std::uint32_t first_datum) const {
  for_data([&](int c) {
    random.normals({Purpose::draw, iteration, first_datum + static_cast<std::uint32_t>(c)}, draws.noise.column(c));
    normal(c).colour(draws.noise.column(c), draws.z.column(c));
  });
  std::ranges::fill(draws.weight, 1.0);
}

void AmortizedFamily::log_density(MatrixView<const double> z, Want want, std::span<double> value,
                                  MatrixView<double> gradient) const {
  for_data([&](int c) {
    const std::span<double> u = scratch<0>(dimension());
    const Normal q = normal(c);
    q.whiten(z.column(c), u);
    if (wants_value(want)) {
      double quadratic = 0;
      for (const double x : u) quadratic += square(x);
      value[c] = -0.5 * quadratic - q.log_normalizer();  // eq2:gaussian_pdf
    }
    if (wants_gradient(want)) {
      q.precondition(u, gradient.column(c));
      for (double& x : gradient.column(c)) x = -x;
    }
  });
}

void AmortizedFamily::add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                                   std::span<double> gradient) const {
  for_data([&](int c) { gradient_of(c, gradient).add_pathwise(coefficient[c], dz.column(c), draws.noise.column(c)); });
}

void AmortizedFamily::add_score(MatrixView<const double> z, std::span<const double> coefficient,
                                std::span<double> gradient) const {
  for_data([&](int c) {
    const std::span<double> u = scratch<0>(dimension()), v = scratch<1>(dimension());
    const Normal q = normal(c);
    q.whiten(z.column(c), u);
    q.precondition(u, v);
    gradient_of(c, gradient).add_score(coefficient[c], q, u, v);
  });
}

void AmortizedFamily::add_draw_score(const Draws& draws, std::span<const double> coefficient,
                                     std::span<double> gradient) const {
  for_data([&](int c) {
    const std::span<double> v = scratch<1>(dimension());
    const Normal q = normal(c);
    q.precondition(draws.noise.column(c), v);  // the noise is the whitened draw
    gradient_of(c, gradient).add_score(coefficient[c], q, draws.noise.column(c), v);
  });
}

void AmortizedFamily::add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const {
  for_data([&](int c) { gradient_of(c, gradient).add_log_normalizer(coefficient[c], normal(c)); });
}

void AmortizedFamily::moments(std::span<double> mean, std::span<double> sd) const {
  for (int d = 0; d < dimension(); ++d) {
    double first = 0, second = 0;
    for (int c = 0; c < count_; ++c) {
      const Normal q = normal(c);
      first += q.mean[d] / count_;
      second += (square(q.mean[d]) + q.variance(d)) / count_;
    }
    mean[d] = first;
    sd[d] = std::sqrt(std::max(0.0, second - square(first)));
  }
}

}  // namespace hone
