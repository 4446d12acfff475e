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

struct Proposal {
  double point;
  double accept;
};

double metropolis(double log_ratio) { return std::isfinite(log_ratio) ? std::exp(std::min(0.0, log_ratio)) : 0; }

Proposal hmc(const Density& p, double z, double momentum, double epsilon, int leapfrog) {
  const double start = p.log_p(z) - 0.5 * momentum * momentum;
  double x = z, y = momentum;
  for (int l = 0; l < leapfrog; ++l) {
    y += 0.5 * epsilon * p.slope(x);
    x += epsilon * y;
    y += 0.5 * epsilon * p.slope(x);
  }
  return {x, metropolis(p.log_p(x) - 0.5 * y * y - start)};
}

Proposal mala(const Density& p, double z, double noise, double delta) {
  const auto log_r = [&](double from, double to) {
    const double shift = to - from - 0.5 * delta * p.slope(from);
    return -shift * shift / (2 * delta);
  };
  const double x = z + 0.5 * delta * p.slope(z) + std::sqrt(delta) * noise;
  return {x, metropolis(p.log_p(x) + log_r(x, z) - p.log_p(z) - log_r(z, x))};
}

Proposal random_walk(const Density& p, double z, double noise, double delta) {
  const double x = z + std::sqrt(delta) * noise;
  return {x, metropolis(p.log_p(x) - p.log_p(z))};
}

}  // namespace

KernelOracle::KernelOracle(const Density& target, Move1d move, double step_size, int leapfrog)
    : spacing_(2 * reach / (nodes - 1)), operator_(static_cast<std::size_t>(nodes) * nodes) {
  for (int i = 0; i < nodes; ++i) grid_.push_back(-reach + i * spacing_);
  const double width = 2 * noise_reach / (noise_nodes - 1);
  for (int i = 0; i < nodes; ++i)
    for (int m = 0; m < noise_nodes; ++m) {
      const double p = -noise_reach + m * width;
      const double weight = width * std::exp(-0.5 * p * p) / std::sqrt(2 * std::numbers::pi);
      const Proposal proposal = move == Move1d::hmc    ? hmc(target, grid_[i], p, step_size, leapfrog)
                                : move == Move1d::mala ? mala(target, grid_[i], p, step_size)
                                                       : random_walk(target, grid_[i], p, step_size);
      add_proposal(i, weight, proposal.accept, proposal.point);
    }
}

void KernelOracle::add_proposal(std::size_t row, double weight, double accept, double proposal) {
  double* const k = operator_.data() + row * nodes;
  const double position = (proposal + reach) / spacing_;
  if (!(position >= 1 && position < nodes - 2)) accept = 0;  // where nothing has mass
  k[row] += weight * (1 - accept);
  if (accept == 0) return;
  const int base = static_cast<int>(position);
  const double x = position - base;  // Lagrange's cubic through base − 1 … base + 2
  const double cubic[4] = {-x * (x - 1) * (x - 2) / 6, (x + 1) * (x - 1) * (x - 2) / 2, -(x + 1) * x * (x - 2) / 2,
                           (x + 1) * x * (x - 1) / 6};
  for (int j = 0; j < 4; ++j) k[base - 1 + j] += weight * accept * cubic[j];
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

std::vector<double> KernelOracle::propagate(const std::vector<double>& density, int t) const {
  std::vector<double> q = density;
  for (; t > 0; --t) {
    std::vector<double> next(nodes);
    for (int i = 0; i < nodes; ++i)
      for (int j = 0; j < nodes; ++j) next[j] += q[i] * operator_[static_cast<std::size_t>(i) * nodes + j];
    q = std::move(next);
  }
  return q;
}

double KernelOracle::integrate(const std::vector<double>& g) const {
  double sum = 0;
  for (const double x : g) sum += x;  // what is integrated vanishes at the ends
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
