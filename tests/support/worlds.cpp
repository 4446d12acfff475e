#include "tests/support/worlds.hpp"

#include <cmath>
#include <numbers>
#include <sstream>

#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "tests/support/differences.hpp"

namespace hone::test {
namespace {

double log_normal(double z, double mean, double sd) {
  const double u = (z - mean) / sd;
  return -0.5 * u * u - std::log(sd) - 0.5 * std::log(2 * std::numbers::pi);
}

GaussianTarget line_gaussian(double mean, double sd) {
  Matrix<double> covariance(1, 1);
  covariance(0, 0) = sd * sd;
  return {{mean}, covariance};
}

// Exact draws of a toy, from the library's families with the toy's own parameters; the banana is a bent Gaussian.
class ExactSampler {
 public:
  explicit ExactSampler(Toy toy) : toy_(toy), gaussian_(2, Covariance::full), mixture_(2, 2, Covariance::full) {
    set_correlation(gaussian_.scale(), toy == Toy::banana ? 0.9 : 0.95);
    for (int k = 0; k < 2; ++k) {
      std::ranges::fill(mixture_.mean(k), k == 0 ? 0.8 : -2.0);
      set_correlation(mixture_.scale(k), k == 0 ? 0.8 : -0.6);
    }
  }

  void draw(const RandomSource& random, std::uint32_t iteration, Matrix<double>& z) {
    Draws first(2, 1, z.cols());
    gaussian_.draw(random, iteration, first);
    z = first.z;
    for (int i = 0; i < z.cols(); ++i) {
      if (toy_ == Toy::banana) z(1, i) -= z(0, i) * z(0, i) + 1;
      if (toy_ != Toy::mixture) continue;
      double u = 0;
      random.uniforms({Purpose::start, iteration, static_cast<std::uint32_t>(i)}, {&u, 1});
      mixture_.normal(u < 0.3 ? 0 : 1).colour(first.noise.column(i), z.column(i));
    }
  }

 private:
  static void set_correlation(std::span<double> lower, double rho) {
    lower[0] = 1;
    lower[1] = rho;
    lower[2] = std::sqrt(1 - rho * rho);
  }

  Toy toy_;
  GaussianFamily gaussian_;
  MixtureFamily mixture_;
};

}  // namespace

World gaussian_world() {
  const double mean = 0.4, sd = 0.9;
  return {std::make_unique<GaussianTarget>(line_gaussian(mean, sd)),
          {[=](double z) { return log_normal(z, mean, sd); }, [=](double z) { return -(z - mean) / (sd * sd); }}};
}

World bimodal_world() {
  const auto left = [](double z) { return 0.4 * std::exp(log_normal(z, -1.2, 0.6)); };
  const auto right = [](double z) { return 0.6 * std::exp(log_normal(z, 1.3, 0.8)); };
  // Far out the sum underflows; there the right component dominates (it is the wider one).
  const auto log_p = [=](double z) {
    const double sum = left(z) + right(z);
    return sum > 0 ? std::log(sum) : std::log(0.6) + log_normal(z, 1.3, 0.8);
  };
  const auto slope = [=](double z) {
    const double sum = left(z) + right(z);
    const double share = sum > 0 ? left(z) / sum : 0;
    return -share * (z + 1.2) / 0.36 - (1 - share) * (z - 1.3) / 0.64;
  };
  std::vector<GaussianTarget> components = {line_gaussian(-1.2, 0.6), line_gaussian(1.3, 0.8)};
  return {std::make_unique<MixtureTarget>(std::vector<double>{0.4, 0.6}, std::move(components)), {log_p, slope}};
}

Approximation gaussian_q() {
  auto family = std::make_unique<GaussianFamily>(1, Covariance::diagonal);
  family->mean()[0] = -0.3;
  family->scale()[0] = 0.6;
  return {std::move(family), [](std::span<const double> theta, double z) { return log_normal(z, theta[0], theta[1]); }};
}

Approximation mixture_q() {
  auto family = std::make_unique<MixtureFamily>(1, 2, Covariance::diagonal);
  family->mean(0)[0] = -0.8;
  family->mean(1)[0] = 0.9;
  family->scale(0)[0] = 0.5;
  family->scale(1)[0] = 0.7;
  family->logits()[0] = 0.3;
  family->logits()[1] = -0.2;
  return {std::move(family), [](std::span<const double> theta, double z) {
            // θ = μ_1, σ_1, μ_2, σ_2, a_1, a_2
            const double share = 1 / (1 + std::exp(theta[5] - theta[4]));
            const double one = std::log(share) + log_normal(z, theta[0], theta[1]);
            const double two = std::log1p(-share) + log_normal(z, theta[2], theta[3]);
            return std::max(one, two) + std::log1p(std::exp(-std::abs(one - two)));
          }};
}

namespace {

// The largest of some numbers; NaN counts as infinite.
template <class Number>
double largest(const std::vector<Deviation>& deviations, Number number) {
  double result = 0;
  for (const Deviation& d : deviations) result = std::max(result, std::isnan(number(d)) ? infinity : number(d));
  return result;
}

}  // namespace

double worst(const std::vector<Deviation>& deviations) {
  return largest(deviations, [](const Deviation& d) { return std::abs(d.errors); });
}

double largest_relative_se(const std::vector<Deviation>& deviations) {
  return largest(deviations, [](const Deviation& d) { return d.relative_se; });
}

std::string describe(const std::vector<Deviation>& deviations) {
  std::ostringstream out;
  for (const Deviation& d : deviations)
    out << "\n  " << d.what << ": " << d.errors << " standard errors of " << 100 * d.relative_se << " %";
  return out.str();
}

std::vector<Deviation> gradient_deviations(const World& world, const Approximation& q, const KernelOracle& oracle,
                                           const GradientCheck& check) {
  FitConfig config;
  config.objective = check.objective;
  config.kernel = check.kernel;
  config.refine = {.steps = check.steps, .adapt = Adapt::off, .step_size = check.step_size, .acceptance = 0.7};
  config.optimizer.rate_location = config.optimizer.rate_scale = config.optimizer.rate_weight = 0;
  config.draws_per_iteration = check.draws;
  const PhiloxSource random(check.seed);
  Fit fit(*world.target, *q.family, config, random);
  std::vector<Moments> moments(q.family->parameters().size());
  for (int i = 0; i < check.iterations; ++i) {
    fit.step();
    for (std::size_t j = 0; j < moments.size(); ++j) moments[j].add(fit.ascent()[j]);
  }

  const double alpha = check.objective->refines() ? check.objective->terms()->alpha : 0;
  std::vector<double> theta(q.family->parameters().begin(), q.family->parameters().end());
  std::vector<double> exact;
  double norm = 0;
  for (double& parameter : theta) {
    exact.push_back(-derivative_in(
        parameter, [&] { return oracle_values(oracle, world.density, q.at(theta), check.steps).alpha_vcd(alpha); }));
    norm += exact.back() * exact.back();
  }
  norm = std::sqrt(norm);

  std::vector<Deviation> deviations;
  for (std::size_t j = 0; j < moments.size(); ++j) {
    const Estimate mean = moments[j].estimate();
    const double se = std::max(mean.se, 1e-12 * norm);  // an estimate without variance
    deviations.push_back({"parameter " + std::to_string(j), (mean.mean - exact[j]) / se, se / norm});
  }
  return deviations;
}

TransportMap some_map() {
  using Shape = TransportMap::Shape;
  const auto of_0 = [](Shape shape, double knot, double factor) {
    return TransportMap::Term{
        .from = 0, .shape = shape, .low = -1.5, .high = 1.2, .width = 0.8, .knot = knot, .bend = 0.3, .factor = factor};
  };
  return TransportMap(2, {{.coordinate = 1,
                           .shift = 0.2,
                           .log_scale = -0.1,
                           .location = {of_0(Shape::linear, 0, 0.4), of_0(Shape::square, 0, -0.3)},
                           .scale = {of_0(Shape::level, 0, 0.35), of_0(Shape::hinge, 0.1, -0.5)}}});
}

Invariance check_invariance(Toy toy, const InvarianceCheck& check) {
  const auto target = make_toy(toy);
  const PhiloxSource random(check.seed);
  ExactSampler sampler(toy);
  Team team(1);
  Refiner refiner(*check.kernel, {.steps = check.steps, .adapt = check.adapt, .step_size = check.step_size}, team);

  struct Statistic {
    const char* name;
    double (*of)(std::span<const double>);
    Moments shift, size;
  };
  std::vector<Statistic> statistics = {
      {"mean of z1", [](auto z) { return z[0]; }, {}, {}},
      {"mean of z2", [](auto z) { return z[1]; }, {}, {}},
      {"z1²", [](auto z) { return z[0] * z[0]; }, {}, {}},
      {"z2²", [](auto z) { return z[1] * z[1]; }, {}, {}},
      {"z1 z2", [](auto z) { return z[0] * z[1]; }, {}, {}},
      {"P(|z1| > 2)", [](auto z) { return std::abs(z[0]) > 2 ? 1.0 : 0.0; }, {}, {}},
  };
  std::unique_ptr<const Target> transported;
  if (check.map) transported = std::make_unique<const TransportedTarget>(*target, *check.map);
  const Target& moving = transported ? *transported : *target;
  Matrix<double> start(2, check.batch), end(2, check.batch);
  Chains chains(2, check.batch);
  std::vector<double> trace(check.map ? check.map->trace_size() : 0);
  Moments acceptance;
  for (int b = 0; b < check.batches; ++b) {
    const auto iteration = static_cast<std::uint32_t>(b + 1);
    sampler.draw(random, iteration, start);
    chains.z = start;
    for (int i = 0; check.map && i < check.batch; ++i) check.map->to_u(start.column(i), chains.z.column(i), trace);
    moving.evaluate(chains.z, Want::both, chains.value, chains.gradient);
    acceptance.add(refiner.refine(moving, chains.view(), check.batch, iteration, random).acceptance);
    end = chains.z;
    for (int i = 0; check.map && i < check.batch; ++i) check.map->to_e(chains.z.column(i), end.column(i), trace);
    for (Statistic& s : statistics) {  // chains in a batch may be coupled, so a batch is one observation
      double shift = 0;
      for (int i = 0; i < check.batch; ++i) {
        shift += (s.of(end.column(i)) - s.of(start.column(i))) / check.batch;
        s.size.add(s.of(start.column(i)));
      }
      s.shift.add(shift);
    }
  }
  Invariance result;
  result.acceptance = acceptance.mean();
  for (const Statistic& s : statistics) {
    // Errors of a mean are relative to the standard deviation; errors of a positive quantity, to its value.
    const Estimate shift = s.shift.estimate();
    const bool mean = std::string(s.name).starts_with("mean");
    result.deviations.push_back(
        {s.name, shift.mean / shift.se, shift.se / (mean ? s.size.sd() : std::abs(s.size.mean()))});
  }
  return result;
}

}  // namespace hone::test
