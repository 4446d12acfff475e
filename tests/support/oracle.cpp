#include "tests/support/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hone::test {
namespace {

constexpr int nodes = 1201;        // on the line
constexpr double reach = 12;       // the line is [−reach, reach]
constexpr int noise_nodes = 1401;  // of p
constexpr double noise_reach = 8.5;
constexpr double noise_width = 2 * noise_reach / (noise_nodes - 1);

double noise_at(int m) { return -noise_reach + m * noise_width; }

double standard_normal(double p) { return std::exp(-0.5 * p * p) / std::sqrt(2 * std::numbers::pi); }

struct Moved {
  double point;
  double accept;
};

double metropolis(double log_ratio) { return std::isfinite(log_ratio) ? std::exp(std::min(0.0, log_ratio)) : 0; }

Moved hmc(const Density& p, double z, double momentum, double epsilon, int leapfrog) {
  const double start = p.log_p(z) - 0.5 * momentum * momentum;
  double x = z, y = momentum, kick = 0.5 * epsilon * p.slope(x);
  for (int l = 0; l < leapfrog; ++l) {
    y += kick;
    x += epsilon * y;
    kick = 0.5 * epsilon * p.slope(x);
    y += kick;
  }
  return {x, metropolis(p.log_p(x) - 0.5 * y * y - start)};
}

Moved mala(const Density& p, double z, double noise, double delta) {
  const auto log_r = [&](double from, double to) {
    const double shift = to - from - 0.5 * delta * p.slope(from);
    return -shift * shift / (2 * delta);
  };
  const double x = z + 0.5 * delta * p.slope(z) + std::sqrt(delta) * noise;
  return {x, metropolis(p.log_p(x) + log_r(x, z) - p.log_p(z) - log_r(z, x))};
}

Moved random_walk(const Density& p, double z, double noise, double delta) {
  const double x = z + std::sqrt(delta) * noise;
  return {x, metropolis(p.log_p(x) - p.log_p(z))};
}

}  // namespace

KernelOracle::KernelOracle(const Density& target, Move1d move, double step_size, int leapfrog)
    : target_(target),
      move_(move),
      step_size_(step_size),
      leapfrog_(leapfrog),
      spacing_(2 * reach / (nodes - 1)),
      operator_(static_cast<std::size_t>(nodes) * nodes) {
  for (int i = 0; i < nodes; ++i) grid_.push_back(-reach + i * spacing_);
  for (int m = 0; m < noise_nodes; ++m) noise_mass_.push_back(noise_width * standard_normal(noise_at(m)));
  for (int i = 0; i < nodes; ++i)
    for (int m = 0; m < noise_nodes; ++m) add_proposal(i, noise_mass_[m], propose(grid_[i], noise_at(m)));
}

KernelOracle::Proposal KernelOracle::propose(double z, double p) const {
  const Moved moved = move_ == Move1d::hmc    ? hmc(target_, z, p, step_size_, leapfrog_)
                      : move_ == Move1d::mala ? mala(target_, z, p, step_size_)
                                              : random_walk(target_, z, p, step_size_);
  const bool inside = std::abs(moved.point) < reach - 2 * spacing_;  // no mass beyond
  return {moved.point, inside ? moved.accept : 0};
}

void KernelOracle::add_proposal(std::size_t row, double weight, const Proposal& proposal) {
  double* const k = operator_.data() + row * nodes;
  k[row] += weight * (1 - proposal.accept);
  if (proposal.accept == 0) return;
  const double position = (proposal.point + reach) / spacing_;
  const int base = static_cast<int>(position);
  const double x = position - base;  // Lagrange's cubic through base − 1 … base + 2
  const double cubic[4] = {-x * (x - 1) * (x - 2) / 6, (x + 1) * (x - 1) * (x - 2) / 2, -(x + 1) * x * (x - 2) / 2,
                           (x + 1) * x * (x - 1) / 6};
  for (int j = 0; j < 4; ++j) k[base - 1 + j] += weight * proposal.accept * cubic[j];
}

std::vector<double> KernelOracle::apply(std::vector<double> g, int t) const {
  for (; t > 0; --t) {
    std::vector<double> next(nodes);
    for (int i = 0; i < nodes; ++i)
      for (int j = 0; j < nodes; ++j) next[i] += operator_[static_cast<std::size_t>(i) * nodes + j] * g[j];
    g = std::move(next);
  }
  return g;
}

std::vector<std::vector<double>> KernelOracle::propagate(const std::vector<double>& density,
                                                         const std::vector<int>& times) const {
  // Between grid points the density is linear; mass is carried from finer points and shared by the two nearest nodes.
  constexpr int finer = 4;
  std::vector<std::vector<Proposal>> proposals((nodes - 1) * finer);  // from each finer point, made when first needed
  std::vector<std::vector<double>> result;
  std::vector<double> q = density;
  for (int t = 1; t <= times.back(); ++t) {
    std::vector<double> mass(nodes);
    const auto put = [&](double z, double amount) {
      const double position = (z + reach) / spacing_;
      const int base = static_cast<int>(position);
      mass[base] += amount * (base + 1 - position);
      mass[base + 1] += amount * (position - base);
    };
    for (int i = 0; i < (nodes - 1) * finer; ++i) {
      const int base = i / finer;
      const double x = (i % finer + 0.5) / finer, z = grid_[base] + x * spacing_;
      const double there = (q[base] * (1 - x) + q[base + 1] * x) * spacing_ / finer;
      if (there < 1e-12) {
        put(z, there);
        continue;
      }
      if (proposals[i].empty())
        for (int m = 0; m < noise_nodes; m += 2) proposals[i].push_back(propose(z, noise_at(m)));
      for (int m = 0; m < noise_nodes; m += 2) {
        const Proposal& proposal = proposals[i][m / 2];
        const double amount = there * 2 * noise_mass_[m];
        put(proposal.point, amount * proposal.accept);
        put(z, amount * (1 - proposal.accept));
      }
    }
    for (int i = 0; i < nodes; ++i) q[i] = mass[i] / spacing_;
    if (std::ranges::find(times, t) != times.end()) result.push_back(q);
  }
  return result;
}

double KernelOracle::integrate(const std::vector<double>& g) const {
  double sum = 0;
  for (const double x : g) sum += x;  // the integrand vanishes at the ends
  return sum * spacing_;
}

std::vector<double> KernelOracle::on_grid(const Function& g) const {
  std::vector<double> values;
  for (const double z : grid_) values.push_back(g(z));
  return values;
}

OracleValues oracle_values(const KernelOracle& kernel, const Density& target, const Function& log_q, int t) {
  const auto f = kernel.on_grid([&](double z) { return target.log_p(z) - log_q(z); });
  const auto refined = kernel.apply(f, t);
  const auto q = kernel.on_grid([&](double z) { return std::exp(log_q(z)); });
  std::vector<double> at_start(q.size()), at_end(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    at_start[i] = q[i] * f[i];
    at_end[i] = q[i] * refined[i];
  }
  return {kernel.integrate(at_start), kernel.integrate(at_end)};
}

}  // namespace hone::test
