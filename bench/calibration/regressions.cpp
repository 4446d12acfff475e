#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// Rows of predictors: 1, then normals with the given correlation between neighbours.
std::vector<Values> predictors(Simulation& simulation, std::size_t rows, std::size_t width, double correlation) {
  std::vector<Values> x;
  for (std::size_t n = 0; n < rows; ++n) {
    Values row = {1};
    for (std::size_t k = 1; k < width; ++k)
      row.push_back(k == 1 ? simulation.normal()
                           : correlation * row.back() + std::sqrt(1 - square(correlation)) * simulation.normal());
    x.push_back(row);
  }
  return x;
}

double dot(const Values& row, At beta) {
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) sum += row[k] * beta[k];
  return sum;
}

// beta ~ N(0, sd); `term(y, eta, by_eta)` is the likelihood of one datum.
template <class Term>
std::unique_ptr<Posterior> generalised(std::vector<Values> x, Values y, double sd, Term term) {
  const std::size_t width = x.front().size();
  return make_posterior(
      [=](At beta, Slope slope) {
        double value = 0;
        std::fill(slope.begin(), slope.end(), 0.0);
        for (std::size_t k = 0; k < width; ++k) value += normal_prior(beta[k], sd, slope[k]);
        for (std::size_t n = 0; n < y.size(); ++n) {
          double by = 0;
          value += term(y[n], dot(x[n], beta), by);
          for (std::size_t k = 0; k < width; ++k) slope[k] += by * x[n][k];
        }
        return value;
      },
      numbered("beta", width));
}

std::unique_ptr<Posterior> logistic() {
  Simulation simulation(31);
  const auto x = predictors(simulation, 120, 8, 0.6);
  const Values beta = {-0.5, 1, 0, -1, 0.5, 0, 0, 1.5};
  Values y;
  for (const Values& row : x) y.push_back(simulation.bernoulli(sigmoid(dot(row, beta))));
  return generalised(x, y, 2.5, bernoulli_logit);
}

// One predictor separates the outcomes: the likelihood has no maximum, the prior decides.
std::unique_ptr<Posterior> separated_logistic() {
  Simulation simulation(32);
  const auto x = predictors(simulation, 30, 2, 0);
  Values y;
  for (const Values& row : x) y.push_back(row[1] > 0.2 ? 1 : 0);
  return generalised(x, y, 5, bernoulli_logit);
}

std::unique_ptr<Posterior> poisson() {
  Simulation simulation(33);
  const auto x = predictors(simulation, 80, 5, 0.5);
  const Values beta = {1, 0.3, -0.2, 0, 0.4};
  Values y;
  for (const Values& row : x) y.push_back(simulation.poisson(std::exp(dot(row, beta))));
  return generalised(x, y, 2, poisson_log);
}

// Student-t errors with 4 degrees of freedom, outliers among the data; the last parameter is their scale.
std::unique_ptr<Posterior> robust() {
  Simulation simulation(34);
  const auto x = predictors(simulation, 60, 4, 0.9);
  const Values beta = {1, 2, -1, 0};
  Values y;
  for (const Values& row : x) y.push_back(dot(row, beta) + (simulation.uniform() < 0.1 ? 8 : 1) * simulation.normal());
  return posterior(list(numbered("beta", 4), std::vector<std::string>{"sigma"}), positive_at(5, {4}),
                   [=](At at, Slope slope) {
                     double value = normal_prior(at[4], 2, slope[4]);
                     for (std::size_t k = 0; k < 4; ++k) value += normal_prior(at[k], 10, slope[k]);
                     for (std::size_t n = 0; n < y.size(); ++n) {
                       double by = 0;
                       const double r = y[n] - dot(x[n], at);
                       value += student_prior(r, 4, at[4], by) - std::log(at[4]);
                       for (std::size_t k = 0; k < 4; ++k) slope[k] -= by * x[n][k];
                       slope[4] -= (by * r + 1) / at[4];
                     }
                     return value;
                   });
}

// The regularised horseshoe: beta_j = z_j tau √(c2 lambda_j² / (c2 + tau² lambda_j²)), three of `width` count.
struct Horseshoe {
  std::vector<Values> x;
  Values y;
  std::size_t width;
  static constexpr std::size_t before = 3;  // sigma, tau, c2; then lambda, then z

  double beta(At at, std::size_t j) const {
    const double tau = at[1], c2 = at[2], lambda = at[before + j];
    return at[before + width + j] * tau * std::sqrt(c2 / (c2 + square(tau * lambda))) * lambda;
  }
  double operator()(At at, Slope slope) const {
    const double sigma = at[0], tau = at[1], c2 = at[2];
    double value =
        normal_prior(sigma, 2, slope[0]) + cauchy_prior(tau, 0.1, slope[1]) + inverse_gamma_prior(c2, 2, 8, slope[2]);
    Values b(width), by_b(width);
    for (std::size_t j = 0; j < width; ++j) {
      b[j] = beta(at, j);
      value += cauchy_prior(at[before + j], 1, slope[before + j]) +
               normal_prior(at[before + width + j], 1, slope[before + width + j]);
    }
    for (std::size_t n = 0; n < y.size(); ++n) {
      double by = 0;
      value += normal(y[n], dot(x[n], b), sigma, by, slope[0]);
      for (std::size_t j = 0; j < width; ++j) by_b[j] += by * x[n][j];
    }
    for (std::size_t j = 0; j < width; ++j) {
      const double lambda = at[before + j], total = c2 + square(tau * lambda), by_log = by_b[j] * b[j];
      slope[before + width + j] += by_log / at[before + width + j];
      slope[before + j] += by_log * (1 / lambda - square(tau) * lambda / total);
      slope[1] += by_log * (1 / tau - tau * square(lambda) / total);
      slope[2] += by_log * 0.5 * (1 / c2 - 1 / total);
    }
    return value;
  }
};

std::unique_ptr<Posterior> horseshoe() {
  Simulation simulation(35);
  Horseshoe model{.x = {}, .y = {}, .width = 12};
  for (int n = 0; n < 50; ++n) {
    model.x.push_back(simulation.normals(model.width));
    const Values& row = model.x.back();
    model.y.push_back(2 * row[0] - 1.5 * row[1] + row[2] + simulation.normal());
  }
  const std::size_t dimension = Horseshoe::before + 2 * model.width;
  std::vector<Scale> scales(dimension, Scale::real);
  std::fill(scales.begin(), scales.begin() + Horseshoe::before + static_cast<int>(model.width), Scale::positive);
  const auto coordinates = list({"sigma", "tau", "c2"}, numbered("lambda", model.width), numbered("z", model.width));
  const auto constrain = [=](At z, Slope natural) {
    to_natural(scales, z, natural);
    for (std::size_t j = 0; j < model.width; ++j) natural[dimension + j] = model.beta(natural, j);
  };
  return make_posterior(on_unconstrained(scales, model), coordinates, list(coordinates, numbered("beta", model.width)),
                        constrain, dimension);
}

}  // namespace

std::vector<Case> regressions() {
  const LongRun careful{.draws = 15'000, .acceptance = 0.98, .by_quantiles = {"tau", "c2", "lambda"}};
  return {{"logistic_8", "regression", logistic, "long NUTS run", [] { return by_nuts(logistic); }, Kept::yes},
          {"logistic_separated", "regression", separated_logistic, "quadrature",
           [] { return by_grid(separated_logistic, 600); }, Kept::yes},
          {"poisson_5", "regression", poisson, "long NUTS run", [] { return by_nuts(poisson); }, Kept::yes},
          {"robust_5", "regression", robust, "long NUTS run", [] { return by_nuts(robust); }, Kept::yes},
          {"horseshoe_27", "regression", horseshoe, "long NUTS run", [=] { return by_nuts(horseshoe, careful); },
           Kept::yes}};
}

}  // namespace hone::calibration
