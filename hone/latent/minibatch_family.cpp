#include "hone/latent/minibatch_family.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

AmortizedGradient columns_of(const AmortizedGradient& all, int begin, int end) {
  return {all.location.columns(begin, end), all.scale.columns(begin, end)};
}

std::span<const double> part(std::span<const double> all, int begin, int end) {
  return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}
std::span<double> part(std::span<double> all, int begin, int end) {
  return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

void AmortizedFamily::log_normalizer(const AmortizedParameters&, std::span<double>) const {
  throw std::logic_error("this family's entropy has no closed form");
}

void AmortizedFamily::add_entropy_gradient(const AmortizedParameters&, std::span<const double>,
                                           const AmortizedGradient&) const {
  throw std::logic_error("this family's entropy has no closed form");
}

MinibatchFamily::MinibatchFamily(std::shared_ptr<const AmortizedFamily> family, int dimension, int count, Team* team)
    : Family(dimension),
      family_(std::move(family)),
      shape_(family_->shape(dimension)),
      count_(count),
      end_(count),
      team_(team),
      log_normalizers_(static_cast<std::size_t>(count)) {
  if (count < 1) throw InputError("a minibatch needs at least one datum");
  const auto size = [&](int rows) { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(count); };
  add_slice("mean", Role::location, size(shape_.location));
  add_slice(family_->name(), Role::scale, size(shape_.scale));
  std::ranges::fill(scale().flat(), 1.0);
}

template <class Do>
void MinibatchFamily::for_shares(Do&& work) const {
  const auto share = [&](int begin, int end, int) {
    if (begin < end) work(columns(begin_ + begin, begin_ + end), begin_ + begin, begin_ + end);
  };
  if (team_)
    team_->for_shares(end_ - begin_, share);
  else
    share(0, end_ - begin_, 0);
}

void MinibatchFamily::restrict_to(int begin, int end) {
  begin_ = begin;
  end_ = end;
}

AmortizedGradient MinibatchFamily::split(std::span<double> all) const {
  return {{all.data(), shape_.location, count_}, {all.data() + slices()[1].offset, shape_.scale, count_}};
}

AmortizedParameters MinibatchFamily::columns(int begin, int end) const {
  const std::span<const double> all = parameters();
  return {MatrixView(all.data(), shape_.location, count_).columns(begin, end),
          MatrixView(all.data() + slices()[1].offset, shape_.scale, count_).columns(begin, end)};
}

void MinibatchFamily::settle() {
  if (!family_->has_analytic_entropy()) return;
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->log_normalizer(q, part(std::span(log_normalizers_), begin, end));
  });
}

void MinibatchFamily::draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
                           std::uint32_t first_datum) const {
  if (draws.noise.rows() != shape_.noise) draws.noise = Matrix<double>(shape_.noise, count_);
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    for (int c = begin; c < end; ++c)
      random.normals({Purpose::draw, iteration, first_datum + static_cast<std::uint32_t>(c)}, draws.noise.column(c));
    family_->draw(q, draws.noise.view().columns(begin, end), draws.z.view().columns(begin, end));
  });
  std::ranges::fill(draws.weight, 1.0);
}

void MinibatchFamily::log_density(MatrixView<const double> z, Want want, std::span<double> value,
                                  MatrixView<double> gradient) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->log_density(q, z.columns(begin, end), want, wants_value(want) ? part(value, begin, end) : value,
                         wants_gradient(want) ? gradient.columns(begin, end) : gradient);
  });
}

void MinibatchFamily::add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                                   std::span<double> gradient) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->add_pathwise(q, draws.noise.view().columns(begin, end), dz.columns(begin, end),
                          part(coefficient, begin, end), columns_of(split(gradient), begin, end));
  });
}

void MinibatchFamily::add_score(MatrixView<const double> z, std::span<const double> coefficient,
                                std::span<double> gradient) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->add_score(q, z.columns(begin, end), part(coefficient, begin, end),
                       columns_of(split(gradient), begin, end));
  });
}

void MinibatchFamily::add_draw_score(const Draws& draws, std::span<const double> coefficient,
                                     std::span<double> gradient) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->add_draw_score(q, draws.noise.view().columns(begin, end), draws.z.view().columns(begin, end),
                            part(coefficient, begin, end), columns_of(split(gradient), begin, end));
  });
}

void MinibatchFamily::add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->add_entropy_gradient(q, part(coefficient, begin, end), columns_of(split(gradient), begin, end));
  });
}

void MinibatchFamily::moments_per_datum(MatrixView<double> mean, MatrixView<double> sd) const {
  for_shares([&](const AmortizedParameters& q, int begin, int end) {
    family_->moments(q, mean.columns(begin, end), sd.columns(begin, end));
  });
}

void MinibatchFamily::moments(std::span<double> mean, std::span<double> sd) const {
  Matrix<double> means(dimension(), count_), sds(dimension(), count_);
  moments_per_datum(means, sds);
  for (int d = 0; d < dimension(); ++d) {
    double first = 0, second = 0;
    for (int c = 0; c < count_; ++c) {
      first += means(d, c) / count_;
      second += (square(means(d, c)) + square(sds(d, c))) / count_;
    }
    mean[d] = first;
    sd[d] = std::sqrt(std::max(0.0, second - square(first)));
  }
}

}  // namespace hone
