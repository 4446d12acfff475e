// A family of your own: independent Student-t coordinates with five degrees of freedom, fitted and judged. The
// posterior has such tails, so that this q can be right where a Gaussian cannot.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "hone/hone.hpp"

using namespace hone;
using Points = MatrixView<const double>;
using Weights = std::span<const double>;
constexpr int nu = 5;
double log_t(double u) { return -0.5 * (nu + 1) * std::log1p(u * u / nu); }  // up to a constant
double pull(double u) { return (nu + 1) * u / (nu + u * u); }                // minus its derivative

class StudentFamily final : public Family {  // θ: D means, then D logarithms of scales; z = mean + scale · t
 public:
  explicit StudentFamily(int d) : Family(d) {
    add_slice("mean", Role::location, d);
    add_slice("log_scale", Role::scale, d);
  }
  double mean(int i) const { return parameters()[i]; }
  double scale(int i) const { return std::exp(parameters()[dimension() + i]); }
  void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws, std::uint32_t first) const override {
    Matrix<double> normal(nu + 1, dimension());
    for (int c = 0; c < draws.count(); ++c) {
      random.normals({Purpose::draw, iteration, first + c}, normal.view().flat());
      for (int i = 0; i < dimension(); ++i) {
        const auto chi = normal.column(i).last(nu);
        draws.noise(i, c) = normal(0, i) / std::sqrt(std::inner_product(chi.begin(), chi.end(), chi.begin(), 0.0) / nu);
        draws.z(i, c) = mean(i) + scale(i) * draws.noise(i, c);
      }
      draws.weight[c] = 1.0 / draws.count();
    }
  }
  void log_density(Points z, Want want, std::span<double> value, MatrixView<double> slope) const override {
    const double constant = std::lgamma((nu + 1) / 2.0) - std::lgamma(nu / 2.0) - std::log(nu * M_PI) / 2;
    if (wants_value(want)) std::ranges::fill(value, dimension() * constant);
    for (int c = 0; c < z.cols(); ++c)
      for (int i = 0; i < dimension(); ++i) {
        const double u = (z(i, c) - mean(i)) / scale(i);
        if (wants_value(want)) value[c] += log_t(u) - std::log(scale(i));
        if (wants_gradient(want)) slope(i, c) = -pull(u) / scale(i);
      }
  }
  void add_pathwise(const Draws& draws, Points dz, Weights weight, std::span<double> gradient) const override {
    for (int c = 0; c < draws.count(); ++c)
      for (int i = 0; i < dimension(); ++i) {
        gradient[i] += weight[c] * dz(i, c);
        gradient[dimension() + i] += weight[c] * dz(i, c) * scale(i) * draws.noise(i, c);
      }
  }
  void add_score(Points z, Weights weight, std::span<double> gradient) const override {
    for (int c = 0; c < z.cols(); ++c)
      for (int i = 0; i < dimension(); ++i) {
        const double u = (z(i, c) - mean(i)) / scale(i);
        gradient[i] += weight[c] * pull(u) / scale(i);
        gradient[dimension() + i] += weight[c] * (u * pull(u) - 1);
      }
  }
  void moments(std::span<double> means, std::span<double> sd) const override {
    for (int i = 0; i < dimension(); ++i) means[i] = mean(i), sd[i] = scale(i) * std::sqrt(nu / (nu - 2.0));
  }
};

int main() {
  const auto density = [](std::span<const double> z, std::span<double> gradient) {  // means 3 and −1, scales 2 and ½
    gradient[0] = -pull((z[0] - 3) / 2) / 2;
    gradient[1] = -pull((z[1] + 1) / 0.5) / 0.5;
    return log_t((z[0] - 3) / 2) + log_t((z[1] + 1) / 0.5);
  };
  CheckedFitConfig config;
  config.fit.own_family = [](int dimension) { return std::make_unique<StudentFamily>(dimension); };
  const CheckedFit fit = fit_and_check(*make_posterior(density, {"a", "b"}), config);
  const ParameterSummary& a = fit.parameters[0];
  std::printf("a: %.2f ± %.2f: %s\n", a.q_mean, a.q_sd, name_of(fit.judgement.verdict).c_str());
  return fit.judgement.verdict == Verdict::use_q && std::abs(a.q_mean - 3) < 0.1 * a.q_sd ? 0 : 1;
}
