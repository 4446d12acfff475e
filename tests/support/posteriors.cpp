#include "tests/support/posteriors.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/scalar.hpp"
#include "tests/support/scales.hpp"

namespace hone::test {
namespace {

using Data = nlohmann::json;

// mu, tau, theta[J]: the funnel.
std::unique_ptr<Posterior> eight_schools_centered(const Data& data) {
  const Values y = data.at("y"), sigma = data.at("sigma");
  std::vector<Scale> scales(y.size() + 2, Scale::real);
  scales[1] = Scale::positive;
  return posterior(list({"mu", "tau"}, numbered("theta", y.size())), scales,
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = normal_prior(x[0], 5, slope[0]) + cauchy_prior(x[1], 5, slope[1]);
                     for (std::size_t j = 0; j < y.size(); ++j) {
                       double by_mean = 0, by_sd = 0;
                       value += normal(x[2 + j], x[0], x[1], by_mean, by_sd);
                       slope[0] += by_mean, slope[1] += by_sd, slope[2 + j] -= by_mean;
                       double ignored = 0;
                       value += normal(y[j], x[2 + j], sigma[j], slope[2 + j], ignored);
                     }
                     return value;
                   });
}

// mu, tau, theta_trans[J], and theta = mu + tau·theta_trans as a transformed parameter.
std::unique_ptr<Posterior> eight_schools_noncentered(const Data& data) {
  const Values y = data.at("y"), sigma = data.at("sigma");
  const std::size_t schools = y.size();
  std::vector<Scale> scales(schools + 2, Scale::real);
  scales[1] = Scale::positive;
  const Natural natural = [=](std::span<const double> x, std::span<double> slope) {
    double value = normal_prior(x[0], 5, slope[0]) + cauchy_prior(x[1], 5, slope[1]);
    for (std::size_t j = 0; j < schools; ++j) {
      double by_theta = 0, ignored = 0;
      value += normal(y[j], x[0] + x[1] * x[2 + j], sigma[j], by_theta, ignored);
      value += normal_prior(x[2 + j], 1, slope[2 + j]);
      slope[0] += by_theta, slope[1] += by_theta * x[2 + j], slope[2 + j] += by_theta * x[1];
    }
    return value;
  };
  const auto constrain = [=](std::span<const double> z, std::span<double> x) {
    to_natural(scales, z, x);
    for (std::size_t j = 0; j < schools; ++j) x[2 + schools + j] = x[0] + x[1] * x[2 + j];
  };
  const auto coordinates = list({"mu", "tau"}, numbered("theta_trans", schools));
  return make_posterior(on_unconstrained(scales, natural), coordinates, list(coordinates, numbered("theta", schools)),
                        constrain, coordinates.size());
}

// y ~ N(X beta, sigma), the rows of X in `rows`; `prior` adds the other terms in beta and sigma.
std::unique_ptr<Posterior> regression(const Values& y, const std::vector<Values>& rows, const Natural& prior) {
  const std::size_t width = rows.front().size();
  std::vector<Scale> scales(width + 1, Scale::real);
  scales[width] = Scale::positive;
  return posterior(list(numbered("beta", width), std::vector<std::string>{"sigma"}), scales,
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = prior(x, slope);
                     for (std::size_t n = 0; n < y.size(); ++n) {
                       double mean = 0, by_mean = 0;
                       for (std::size_t k = 0; k < width; ++k) mean += rows[n][k] * x[k];
                       value += normal(y[n], mean, x[width], by_mean, slope[width]);
                       for (std::size_t k = 0; k < width; ++k) slope[k] += rows[n][k] * by_mean;
                     }
                     return value;
                   });
}

std::unique_ptr<Posterior> ar_k(const Data& data) {
  const Values y = data.at("y");
  const std::size_t order = data.at("K");
  std::vector<Scale> scales(order + 2, Scale::real);
  scales[order + 1] = Scale::positive;
  return posterior(list({"alpha"}, numbered("beta", order), std::vector<std::string>{"sigma"}), scales,
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = cauchy_prior(x[order + 1], 2.5, slope[order + 1]);
                     for (std::size_t k = 0; k <= order; ++k) value += normal_prior(x[k], 10, slope[k]);
                     for (std::size_t t = order; t < y.size(); ++t) {
                       double mean = x[0], by_mean = 0;
                       for (std::size_t k = 1; k <= order; ++k) mean += x[k] * y[t - k];
                       value += normal(y[t], mean, x[order + 1], by_mean, slope[order + 1]);
                       slope[0] += by_mean;
                       for (std::size_t k = 1; k <= order; ++k) slope[k] += y[t - k] * by_mean;
                     }
                     return value;
                   });
}

// mu, alpha0, alpha1, beta1. The variance v_t and its four derivatives are carried forward.
std::unique_ptr<Posterior> garch(const Data& data) {
  const Values y = data.at("y");
  const double sigma1 = data.at("sigma1");
  return posterior({"mu", "alpha0", "alpha1", "beta1"}, {Scale::real, Scale::positive, Scale::unit, Scale::below},
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = 0, v = sigma1 * sigma1, by[4] = {};
                     for (std::size_t t = 0; t < y.size(); ++t) {
                       if (t > 0) {
                         const double r = y[t - 1] - x[0];
                         for (double& b : by) b *= x[3];
                         by[0] -= 2 * x[2] * r, by[1] += 1, by[2] += r * r, by[3] += v;
                         v = x[1] + x[2] * r * r + x[3] * v;
                       }
                       double by_sd = 0;
                       value += normal(y[t], x[0], std::sqrt(v), slope[0], by_sd);
                       for (int k = 0; k < 4; ++k) slope[k] += by_sd * by[k] / (2 * std::sqrt(v));
                     }
                     return value;
                   });
}

std::unique_ptr<Posterior> kidiq(const Data& data) {
  const Values mom_hs = data.at("mom_hs"), mom_iq = data.at("mom_iq");
  std::vector<Values> rows;
  for (std::size_t n = 0; n < mom_hs.size(); ++n) rows.push_back({1, mom_hs[n], mom_iq[n], mom_hs[n] * mom_iq[n]});
  return regression(data.at("kid_score"), rows, [](std::span<const double> x, std::span<double> slope) {
    return cauchy_prior(x[4], 2.5, slope[4]);
  });
}

std::unique_ptr<Posterior> mesquite(const Data& data) {
  Values y = data.at("weight");
  for (double& value : y) value = std::log(value);
  std::vector<Values> rows(y.size(), Values{1});
  for (const char* name : {"diam1", "diam2", "canopy_height", "total_height", "density"})
    for (std::size_t n = 0; n < y.size(); ++n) rows[n].push_back(std::log(data.at(name)[n].get<double>()));
  for (std::size_t n = 0; n < y.size(); ++n) rows[n].push_back(data.at("group")[n]);
  return regression(y, rows, [](std::span<const double>, std::span<double>) { return 0.0; });
}

std::unique_ptr<Posterior> sblrc(const Data& data) {
  const std::vector<Values> rows = data.at("X");
  return regression(data.at("y"), rows, [](std::span<const double> x, std::span<double> slope) {
    double value = 0;
    for (std::size_t k = 0; k < x.size(); ++k) value += normal_prior(x[k], 10, slope[k]);  // sigma's is the same
    return value;
  });
}

// mu[2] ordered, sigma[2], theta
std::unique_ptr<Posterior> low_dim_gauss_mix(const Data& data) {
  const Values y = data.at("y");
  return posterior({"mu.1", "mu.2", "sigma.1", "sigma.2", "theta"},
                   {Scale::real, Scale::after, Scale::positive, Scale::positive, Scale::unit},
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = 4 * (std::log(x[4]) + std::log1p(-x[4]));  // Beta(5, 5)
                     slope[4] += 4 / x[4] - 4 / (1 - x[4]);
                     for (int k = 0; k < 4; ++k) value += normal_prior(x[k], 2, slope[k]);
                     for (const double point : y) {
                       double by_mean[2] = {}, by_sd[2] = {};
                       const double first = std::log(x[4]) + normal(point, x[0], x[2], by_mean[0], by_sd[0]);
                       const double second = std::log1p(-x[4]) + normal(point, x[1], x[3], by_mean[1], by_sd[1]);
                       const double total = std::max(first, second) + std::log1p(std::exp(-std::abs(first - second)));
                       const double share[2] = {std::exp(first - total), std::exp(second - total)};
                       for (int k = 0; k < 2; ++k)
                         slope[k] += share[k] * by_mean[k], slope[2 + k] += share[k] * by_sd[k];
                       slope[4] += share[0] / x[4] - share[1] / (1 - x[4]);
                       value += total;
                     }
                     return value;
                   });
}

// K⁻¹ of a positive definite K (n, n) by Gauss and Jordan, and log det K. Slow and plain: n is 11.
double invert(std::vector<Values>& k) {
  const std::size_t n = k.size();
  double log_det = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const double pivot = k[p][p];
    if (!(pivot > 0)) throw Error("K is not positive definite");
    log_det += std::log(pivot);
    k[p][p] = 1;
    for (double& entry : k[p]) entry /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const double factor = std::exchange(k[i][p], 0.0);
      for (std::size_t j = 0; j < n; ++j) k[i][j] -= factor * k[p][j];
    }
  }
  return log_det;
}

// rho, alpha, sigma; K_ij = alpha² exp(−(x_i − x_j)² / (2 rho²)) + sigma [i = j]
std::unique_ptr<Posterior> gp_regr(const Data& data) {
  const Values at = data.at("x"), y = data.at("y");
  const std::size_t n = y.size();
  return posterior({"rho", "alpha", "sigma"}, {Scale::positive, Scale::positive, Scale::positive},
                   [=](std::span<const double> x, std::span<double> slope) {
                     double value = 24 * std::log(x[0]) - 4 * x[0];  // Gamma(25, 4)
                     slope[0] += 24 / x[0] - 4;
                     value += normal_prior(x[1], 2, slope[1]) + normal_prior(x[2], 1, slope[2]);
                     std::vector<Values> smooth(n, Values(n)), inverse(n, Values(n));
                     for (std::size_t i = 0; i < n; ++i)
                       for (std::size_t j = 0; j < n; ++j) {
                         smooth[i][j] = square(x[1]) * std::exp(-0.5 * square((at[i] - at[j]) / x[0]));
                         inverse[i][j] = smooth[i][j] + (i == j ? x[2] : 0);
                       }
                     value -= 0.5 * invert(inverse);
                     Values solved(n);  // K⁻¹ y
                     for (std::size_t i = 0; i < n; ++i)
                       for (std::size_t j = 0; j < n; ++j) solved[i] += inverse[i][j] * y[j];
                     for (std::size_t i = 0; i < n; ++i) value -= 0.5 * y[i] * solved[i];
                     for (std::size_t i = 0; i < n; ++i)
                       for (std::size_t j = 0; j < n; ++j) {
                         const double by_k = 0.5 * (solved[i] * solved[j] - inverse[i][j]);
                         slope[0] += by_k * smooth[i][j] * square(at[i] - at[j]) / (x[0] * x[0] * x[0]);
                         slope[1] += by_k * smooth[i][j] * 2 / x[1];
                         if (i == j) slope[2] += by_k;
                       }
                     return value;
                   });
}

const std::string root = HONE_SOURCE_DIR "/examples/posteriors/";

}  // namespace

const std::vector<KnownPosterior>& known_posteriors() {
  static const std::vector<KnownPosterior> all = {{"eight_schools_centered", "eight_schools"},
                                                  {"eight_schools_noncentered", "eight_schools"},
                                                  {"arK", "arK"},
                                                  {"garch", "garch"},
                                                  {"kidiq", "kidiq"},
                                                  {"mesquite", "mesquite"},
                                                  {"sblrc", "sblrc"},
                                                  {"low_dim_gauss_mix", "low_dim_gauss_mix"},
                                                  {"gp_regr", "gp_regr"}};
  return all;
}

std::string known_file(const KnownPosterior& known, const std::string& name) {
  return root + known.folder + "/" + name;
}

std::string known_program(const KnownPosterior& known) { return root + known.program + ".stan"; }

std::unique_ptr<Posterior> make_known(const KnownPosterior& known) {
  static const std::map<std::string, std::unique_ptr<Posterior> (*)(const Data&)> makers = {
      {"eight_schools_centered", eight_schools_centered},
      {"eight_schools_noncentered", eight_schools_noncentered},
      {"arK", ar_k},
      {"garch", garch},
      {"kidiq", kidiq},
      {"mesquite", mesquite},
      {"sblrc", sblrc},
      {"low_dim_gauss_mix", low_dim_gauss_mix},
      {"gp_regr", gp_regr}};
  return makers.at(known.program)(Data::parse(read_file(known_file(known, "data.json"))));
}

std::unique_ptr<Posterior> make_known(const std::string& program) {
  for (const KnownPosterior& known : known_posteriors())
    if (known.program == program) return make_known(known);
  throw InputError("no known posterior is called '" + program + "'");
}

std::map<std::string, ReferenceMoments> reference_moments(const KnownPosterior& known) {
  std::map<std::string, ReferenceMoments> moments;
  const Data reference = Data::parse(read_file(known_file(known, "reference.json")));
  for (const auto& [key, entry] : reference.at("parameters").items()) {
    std::string name = key;  // theta[1] → theta.1
    for (char& letter : name)
      if (letter == '[' || letter == ',') letter = '.';
    std::erase(name, ']');
    moments[name] = {entry.at("mean"), entry.at("sd"), entry.at("mcse_mean"), entry.at("mean_sq"),
                     entry.at("mcse_mean_sq")};
  }
  return moments;
}

}  // namespace hone::test
