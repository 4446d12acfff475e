// A VAE on data in memory, with a q(z | x) and an optimizer of your own: Laplace coordinates per datum, and Lion.
#include <cmath>
#include <cstdio>

#include "hone/hone.hpp"

using namespace hone;
using Points = MatrixView<const double>;
using Weights = std::span<const double>;
using Q = AmortizedParameters;
double laplace(double e) { return std::copysign(std::log(std::erfc(std::abs(e) / M_SQRT2)), e); }  // of a normal number

// The encoder gives D means and D scales, which are positive: z = mean + scale · laplace(noise).
class LaplaceFamily final : public AmortizedFamily {
 public:
  std::string name() const override { return "laplace"; }  // in checkpoints
  AmortizedShape shape(int d) const override { return {.location = d, .scale = d, .positive = d, .noise = d}; }
  static void each(const Q& q, auto work) {
    for (int c = 0; c < q.count(); ++c)
      for (int i = 0; i < q.location.rows(); ++i) work(i, c);
  }
  void draw(const Q& q, Points e, MatrixView<double> z) const override {
    each(q, [&](int i, int c) { z(i, c) = q.location(i, c) + q.scale(i, c) * laplace(e(i, c)); });
  }
  void log_density(const Q& q, Points z, Want want, std::span<double> value, MatrixView<double> slope) const override {
    each(q, [&](int i, int c) {
      const double u = (z(i, c) - q.location(i, c)) / q.scale(i, c);
      if (wants_value(want)) value[c] = (i == 0 ? 0 : value[c]) - std::abs(u) - std::log(2 * q.scale(i, c));
      if (wants_gradient(want)) slope(i, c) = -std::copysign(1 / q.scale(i, c), u);
    });
  }
  void add_pathwise(const Q& q, Points noise, Points dz, Weights weight, const AmortizedGradient& out) const override {
    each(q, [&](int i, int c) { out.location(i, c) += weight[c] * dz(i, c); });
    each(q, [&](int i, int c) { out.scale(i, c) += weight[c] * dz(i, c) * laplace(noise(i, c)); });
  }
  void add_score(const Q& q, Points z, Weights weight, const AmortizedGradient& out) const override {
    each(q, [&](int i, int c) {
      const double u = (z(i, c) - q.location(i, c)) / q.scale(i, c);
      out.location(i, c) += weight[c] * std::copysign(1 / q.scale(i, c), u);
      out.scale(i, c) += weight[c] * (std::abs(u) - 1) / q.scale(i, c);
    });
  }
  void moments(const Q& q, MatrixView<double> mean, MatrixView<double> sd) const override {
    each(q, [&](int i, int c) { mean(i, c) = q.location(i, c), sd(i, c) = M_SQRT2 * q.scale(i, c); });
  }
};

class Lion final : public ModelOptimizer {
  std::vector<double> momentum_;

 public:
  std::unique_ptr<ModelOptimizer> clone() const override { return std::make_unique<Lion>(); }
  std::string name() const override { return "lion"; }
  void step(std::span<const TensorStep> tensors, std::uint32_t) override {
    std::size_t at = 0;
    for (const TensorStep& tensor : tensors)
      for (std::size_t i = 0; i < tensor.theta.size(); ++i, ++at) {
        momentum_.resize(std::max(momentum_.size(), at + 1));
        tensor.theta[i] += std::copysign(tensor.rate, 0.9 * momentum_[at] + 0.1 * tensor.gradient[i]);
        momentum_[at] += 0.01 * (tensor.gradient[i] - momentum_[at]);
      }
  }
  void visit_state(const Visit& visit) override { visit("momentum", momentum_); }  // for checkpoints
};

int main() {
  std::vector<double> x(2000 * 64);  // images of 8 × 8 bits: a bright row or column
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = ((i / 64 % 2 ? i : i / 8) % 8 == i / 64 * 7 / 2 % 8);
  const DataSet data = packed_if_binary(DataSet(x, {8, 8}));
  TrainConfig config;
  config.model = {.latent = 3, .hidden = {32}, .encoder_hidden = {32}};
  config.family = std::make_shared<LaplaceFamily>();
  config.own_optimizer = std::make_shared<Lion>();
  const auto engine = make_engine(EngineKind::cpu, config, data);
  TrainMetrics first, last;
  engine->train(50, first), engine->train(1900, last), engine->train(50, last = {});
  std::printf("ELBO %.2f, then %.2f; VCD %.2f\n", first.elbo.mean(), last.elbo.mean(), last.vcd.mean());
  return last.elbo.mean() > first.elbo.mean() + 20 ? 0 : 1;
}
