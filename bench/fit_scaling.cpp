// How a fit of one posterior scales with threads: the refinement of 4,000 chains, and a whole fit with its checks. The
// posterior is a logistic regression whose gradient takes about 20 µs.
//   bench_fit_scaling [threads …]
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "hone/fit/checked_fit.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/density.hpp"

namespace {

using namespace hone;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Labels that follow the model itself, with N(0, 1) priors.
class LogisticRegression {
 public:
  LogisticRegression(int observations, int dimension)
      : observations_(observations), x_(dimension, observations), label_(static_cast<std::size_t>(observations)) {
    const PhiloxSource random(1);
    random.normals({.purpose = Purpose::synthesize}, x_.view().flat());
    std::vector<double> uniform(label_.size());
    random.uniforms({.purpose = Purpose::synthesize, .datum = 1}, uniform);
    for (int i = 0; i < observations; ++i)
      label_[i] = uniform[i] < 1 / (1 + std::exp(-x_(0, i) + 0.5 * x_(1, i))) ? 1 : 0;
  }
  double operator()(std::span<const double> z, std::span<double> gradient) const {
    double value = 0;
    for (std::size_t d = 0; d < z.size(); ++d) {
      value -= 0.5 * z[d] * z[d];
      gradient[d] = -z[d];
    }
    for (int i = 0; i < observations_; ++i) {
      const std::span<const double> x = x_.column(i);
      double a = 0;
      for (std::size_t d = 0; d < z.size(); ++d) a += x[d] * z[d];
      const double e = std::exp(-std::abs(a));
      value += label_[i] * a - std::fmax(a, 0) - std::log1p(e);
      const double residual = label_[i] - (a > 0 ? 1 : e) / (1 + e);
      for (std::size_t d = 0; d < z.size(); ++d) gradient[d] += residual * x[d];
    }
    return value;
  }

 private:
  int observations_;
  Matrix<double> x_;
  std::vector<double> label_;
};

constexpr int dimension = 20, observations = 400, chain_count = 4000;

double microseconds_of(const LogisticRegression& model) {
  constexpr int calls = 5000;
  std::vector<double> z(dimension, 0.1), gradient(dimension);
  double sum = 0;
  const double begun = now();
  for (int i = 0; i < calls; ++i) {
    z[0] = 1e-6 * i;
    sum += model(z, gradient);
  }
  return std::isfinite(sum) ? 1e6 * (now() - begun) / calls : 0;
}

// Seconds of two HMC steps of some chains; the median of three.
double refinement_seconds(const LogisticRegression& model, int count, int threads) {
  const DensityTarget target(dimension, model);
  const PhiloxSource random(1);
  Team team(threads);
  Refiner refiner(Hmc(), {.steps = 2, .adapt = Adapt::off, .step_size = 0.02, .acceptance = -1}, team);
  Chains chains(dimension, count);
  random.normals({.purpose = Purpose::start}, chains.z.view().flat());
  for (double& z : chains.z.view().flat()) z *= 0.1;
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient, {});
  std::vector<double> seconds;
  for (std::uint32_t repeat = 0; repeat < 3; ++repeat) {
    const double begun = now();
    refiner.refine(target, chains.view(), count, repeat + 1, random);
    seconds.push_back(now() - begun);
  }
  std::ranges::sort(seconds);
  return seconds[1];
}

// The same by threads that share nothing and never meet, on average: what the machine allows.
double apart_seconds(const LogisticRegression& model, int threads) {
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  std::vector<std::jthread> all;
  for (double& each : seconds)
    all.emplace_back([&] { each = refinement_seconds(LogisticRegression(model), chain_count / threads, 1); });
  for (std::jthread& thread : all) thread.join();
  double sum = 0;
  for (const double each : seconds) sum += each;
  return sum / threads;
}

double fit_seconds(const LogisticRegression& model, int threads) {
  std::vector<std::string> names;
  for (int i = 0; i < dimension; ++i) names.push_back(fmt::format("b{}", i + 1));
  const auto posterior = make_posterior(model, names);
  CheckedFitConfig config;
  config.fit.threads = threads;
  const double begun = now();
  fit_and_check(*posterior, config);
  return now() - begun;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> threads;
  for (int i = 1; i < argc; ++i) {
    threads.push_back(std::atoi(argv[i]));
    if (threads.back() >= 1) continue;
    fmt::print(stderr, "bench_fit_scaling: '{}' is not a number of threads\n", argv[i]);
    return 2;
  }
  if (threads.empty())
    for (int t = 1; t <= static_cast<int>(std::thread::hardware_concurrency()); t *= 2) threads.push_back(t);
  const LogisticRegression model(observations, dimension);
  fmt::print("gradient: {:.1f} µs\n", microseconds_of(model));
  fmt::print("threads   4,000 chains s   of ideal   apart s   of ideal   whole fit s   of ideal\n");
  double chains_alone = 0, fit_alone = 0;
  for (const int t : threads) {
    const double chains = refinement_seconds(model, chain_count, t), apart = apart_seconds(model, t);
    const double fit = fit_seconds(model, t);
    if (chains_alone == 0) {  // the first number of threads is what the others are compared with
      chains_alone = chains * t;
      fit_alone = fit * t;
    }
    fmt::print("{:>7}{:>17.3f}{:>9.0f} %{:>10.3f}{:>9.0f} %{:>14.2f}{:>9.0f} %\n", t, chains,
               100 * chains_alone / (chains * t), apart, 100 * chains_alone / (apart * t), fit,
               100 * fit_alone / (fit * t));
  }
}
