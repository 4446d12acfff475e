#include "bench/calibration/nuts.hpp"

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone::calibration {
namespace {

constexpr int deepest = 10;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double log_add(double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); }

}  // namespace

Nuts::Nuts(const Posterior& posterior, double acceptance, std::uint64_t seed)
    : posterior_(posterior), acceptance_(acceptance), random_(seed) {
  const auto d = static_cast<std::size_t>(posterior.dimension());
  l_.assign(d * d, 0.0);
  for (std::size_t i = 0; i < d; ++i) l_[i * d + i] = 1;
  z_.resize(d), gradient_z_.resize(d);
  now_ = {.e = Values(d), .momentum = Values(d), .gradient = Values(d)};
  for (int attempt = 0; attempt < 100; ++attempt) {
    for (double& e : now_.e) e = 4 * uniform_(random_) - 2;
    evaluate(now_);
    if (std::isfinite(now_.log_p)) return;
  }
  throw Error("no point of finite density in a hundred attempts");
}

void Nuts::evaluate(State& state) {
  const int d = posterior_.dimension();
  const auto size = static_cast<std::size_t>(d);
  for (std::size_t i = 0; i < size; ++i) {
    z_[i] = 0;
    for (std::size_t j = 0; j <= i; ++j) z_[i] += l_[i * size + j] * state.e[j];
  }
  posterior_.evaluate({z_.data(), d, 1}, Want::both, {&state.log_p, 1}, {gradient_z_.data(), d, 1});
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j <= i; ++j) state.gradient[j] += l_[i * size + j] * gradient_z_[i];
}

void Nuts::leapfrog(State& state, double direction) {
  const double step = direction * step_;
  for (std::size_t i = 0; i < state.e.size(); ++i) {
    state.momentum[i] += 0.5 * step * state.gradient[i];
    state.e[i] += step * state.momentum[i];
  }
  evaluate(state);
  for (std::size_t i = 0; i < state.e.size(); ++i) state.momentum[i] += 0.5 * step * state.gradient[i];
}

bool Nuts::turned(const Tree& tree) const {
  return dot(tree.first.momentum, tree.momenta) <= 0 || dot(tree.last.momentum, tree.momenta) <= 0;
}

// Appends `more` on the side of `direction`; its state is chosen by weight, or with preference for the new side.
void Nuts::join(Tree& tree, Tree&& more, double direction, bool biased) {
  const double total = log_add(tree.log_weight, more.log_weight);
  const double log_chance = more.log_weight - (biased ? tree.log_weight : total);
  if (log_chance >= 0 || std::log(uniform_(random_)) < log_chance) tree.chosen = std::move(more.chosen);
  (direction > 0 ? tree.last : tree.first) = std::move(direction > 0 ? more.last : more.first);
  for (std::size_t i = 0; i < tree.momenta.size(); ++i) tree.momenta[i] += more.momenta[i];
  tree.log_weight = total;
  tree.turned = turned(tree);
}

Nuts::Tree Nuts::grow(const State& from, int depth, double direction, double energy) {
  if (depth == 0) {
    State state = from;
    leapfrog(state, direction);
    const double change = state.log_p - 0.5 * dot(state.momentum, state.momentum) - energy;
    const double log_weight = std::isnan(change) ? -infinity : change;
    accepted_ += std::min(1.0, std::exp(log_weight));
    ++proposed_;
    const bool diverged = !(log_weight > -1000);
    divergences_ += diverged;
    return {state, state, state, state.momentum, log_weight, diverged};
  }
  Tree tree = grow(from, depth - 1, direction, energy);
  if (tree.turned) return tree;
  Tree more = grow(direction > 0 ? tree.last : tree.first, depth - 1, direction, energy);
  if (more.turned) {
    tree.turned = true;
    return tree;
  }
  join(tree, std::move(more), direction, false);
  return tree;
}

std::span<const double> Nuts::next() {
  for (double& p : now_.momentum) p = normal_(random_);
  const double energy = now_.log_p - 0.5 * dot(now_.momentum, now_.momentum);
  accepted_ = proposed_ = 0;
  Tree tree{now_, now_, now_, now_.momentum, 0, false};
  for (int depth = 0; depth < deepest && !tree.turned; ++depth) {
    const double direction = uniform_(random_) < 0.5 ? -1 : 1;
    Tree more = grow(direction > 0 ? tree.last : tree.first, depth, direction, energy);
    if (more.turned) break;
    join(tree, std::move(more), direction, true);
  }
  now_ = std::move(tree.chosen);
  const std::size_t d = z_.size();
  for (std::size_t i = 0; i < d; ++i) {
    z_[i] = 0;
    for (std::size_t j = 0; j <= i; ++j) z_[i] += l_[i * d + j] * now_.e[j];
  }
  return z_;
}

// Doubles or halves the step size until one leapfrog step crosses an acceptance of 0.8.
void Nuts::find_step_size() {
  const auto accepted = [this] {
    State state = now_;
    for (double& p : state.momentum) p = normal_(random_);
    const double before = state.log_p - 0.5 * dot(state.momentum, state.momentum);
    leapfrog(state, 1);
    const double change = state.log_p - 0.5 * dot(state.momentum, state.momentum) - before;
    return change > std::log(0.8);
  };
  const bool grows = accepted();
  for (int i = 0; i < 50 && accepted() == grows; ++i) step_ *= grows ? 2 : 0.5;
  bar_ = mean_log_step_ = 0;
  anchor_ = std::log(10 * step_);
}

void Nuts::adapt_step_size(int iteration) {
  const double m = iteration + 1, share = 1 / (m + 10);
  bar_ = (1 - share) * bar_ + share * (acceptance_ - accepted_ / std::max(1.0, proposed_));
  const double log_step = anchor_ - std::sqrt(m) / 0.05 * bar_, weight = std::pow(m, -0.75);
  mean_log_step_ = weight * log_step + (1 - weight) * mean_log_step_;
  step_ = std::exp(log_step);
}

// L from the covariance of draws, shrunk a little towards their variances.
void Nuts::set_metric(const std::vector<Values>& draws) {
  const std::size_t d = z_.size();
  const auto n = static_cast<double>(draws.size());
  Values mean(d);
  for (const Values& z : draws)
    for (std::size_t i = 0; i < d; ++i) mean[i] += z[i] / n;
  Values at = z_;
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (const Values& z : draws) sum += (z[i] - mean[i]) * (z[j] - mean[j]) / n;
      l_[i * d + j] = i == j ? sum + 1e-10 : sum * n / (n + 5 + static_cast<double>(d) / 4);
    }
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < j; ++k) l_[j * d + j] -= square(l_[j * d + k]);
    l_[j * d + j] = std::sqrt(std::max(l_[j * d + j], 1e-12));
    for (std::size_t i = j + 1; i < d; ++i) {
      for (std::size_t k = 0; k < j; ++k) l_[i * d + j] -= l_[i * d + k] * l_[j * d + k];
      l_[i * d + j] /= l_[j * d + j];
    }
  }
  for (std::size_t i = 0; i < d; ++i) {  // the same point in the new coordinates
    now_.e[i] = at[i];
    for (std::size_t j = 0; j < i; ++j) now_.e[i] -= l_[i * d + j] * now_.e[j];
    now_.e[i] /= l_[i * d + i];
  }
  evaluate(now_);
}

void Nuts::warm_up() {
  constexpr int windows[] = {100, 200, 400, 600, 1000, 300};
  for (std::size_t w = 0; w < std::size(windows); ++w) {
    find_step_size();
    std::vector<Values> draws;
    for (int i = 0; i < windows[w]; ++i) {
      const auto z = next();
      draws.emplace_back(z.begin(), z.end());
      adapt_step_size(i);
    }
    step_ = std::exp(mean_log_step_);
    if (w > 0 && w + 1 < std::size(windows)) set_metric(draws);
  }
  divergences_ = 0;
}

}  // namespace hone::calibration
