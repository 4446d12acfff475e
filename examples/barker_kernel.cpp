// A kernel of your own: the Barker proposal of Livingstone and Zanella (2022). It flips the sign of each coordinate's
// step by a coin that the gradient biases. It tolerates too large a step size better than MALA does.
#include <cmath>
#include <cstdio>

#include "hone/hone.hpp"

double softplus(double a) { return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a)); }

class Barker final : public hone::Kernel {
 public:
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Barker>(); }
  hone::Want wants() const override { return hone::Want::both; }
  double default_acceptance() const override { return 0.57; }

  void step(const hone::Target& target, const hone::Move& move, const hone::ChainsView& chains) override {
    const int d = chains.z.rows(), n = chains.count();
    hone::Matrix<double> z(d, n), gradient(d, n);
    std::vector<double> coin(d), value(n);
    std::vector<std::uint32_t> datum(n);
    for (int c = 0; c < n; ++c) {
      datum[c] = chains.datum(c);
      move.random.normals({hone::Purpose::momentum, move.iteration, datum[c], move.step}, z.column(c));
      move.random.uniforms({hone::Purpose::proposal, move.iteration, datum[c], move.step}, coin);
      for (int i = 0; i < d; ++i) {
        const double step = move.step_size * z(i, c);
        const bool keep = coin[i] < 1 / (1 + std::exp(-step * chains.gradient(i, c)));
        z(i, c) = chains.z(i, c) + (keep ? step : -step);
      }
    }
    target.evaluate(z, hone::Want::both, value, gradient, datum);
    for (int c = 0; c < n; ++c) {
      double log_ratio = value[c] - chains.value[c];
      for (int i = 0; i < d; ++i) {  // of the coins there and back; the normals are symmetric
        const double step = z(i, c) - chains.z(i, c);
        log_ratio += softplus(-step * chains.gradient(i, c)) - softplus(step * gradient(i, c));
      }
      hone::metropolis({.log_ratio = log_ratio, .value = value[c], .z = z.column(c), .gradient = gradient.column(c)},
                       move, chains, c);
    }
  }
};

int main() {
  // z1 ~ N(1, 0.5²), and z2 the logarithm of an exponential variable: mean −0.5772, variance π² / 6.
  const hone::DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -4 * (z[0] - 1);
    gradient[1] = 1 - std::exp(z[1]);
    return -2 * (z[0] - 1) * (z[0] - 1) + z[1] - std::exp(z[1]);
  });
  const hone::PhiloxSource random(1);
  hone::Team team(2);
  hone::Chains chains(2, 4000);  // all begin at 0
  target.evaluate(chains.z, hone::Want::both, chains.value, chains.gradient);
  const Barker barker;
  hone::Refiner refiner(barker, {.steps = 200, .step_size = 1}, team);
  const double acceptance = refiner.refine(target, chains.view(), 4000, 1, random).acceptance;
  const double mean[2] = {1, -0.57722}, sd[2] = {0.5, 1.28255};
  bool good = acceptance > 0.3;
  for (int i = 0; i < 2; ++i) {
    hone::Moments moments;
    for (int c = 0; c < 4000; ++c) moments.add(chains.z(i, c));
    std::printf("z%d: %.3f ± %.3f, sd %.3f\n", i + 1, moments.mean(), moments.estimate().se, moments.sd());
    good = good && std::abs(moments.mean() - mean[i]) < 4 * moments.estimate().se;
    good = good && std::abs(moments.sd() / sd[i] - 1) < 0.05;
  }
  hone::GaussianFamily q(2, hone::Covariance::full);  // and in a fit by VCD
  hone::FitConfig config;
  config.kernel = std::make_shared<Barker>();
  hone::Fit fit(target, q, config, random);
  for (int i = 0; i < 5000; ++i) fit.step();
  std::printf("q: mean %.2f %.2f\n", q.mean()[0], q.mean()[1]);
  return good && std::abs(q.mean()[0] - 1) < 0.1 ? 0 : 1;
}
