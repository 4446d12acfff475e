#include "hone/fit/local_normal.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/optim/lbfgs.hpp"
#include "hone/target/batches.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

constexpr int path_draws = 5, sharp_draws = 25;
constexpr double wide = 3;                             // sds
constexpr std::uint32_t surplus_iteration = 1u << 20;  // random numbers beside those of the starts

// L Lᵀ as a lower triangular factor
std::vector<double> lower_factor(const Whitening& whitening) {
  const Matrix<double> factor = whitening.factor();
  const int d = factor.rows();
  Matrix<double> covariance(d, d);
  for (int k = 0; k < d; ++k)
    for (int j = 0; j < d; ++j)
      for (int i = j; i < d; ++i) covariance(i, j) += factor(i, k) * factor(j, k);
  return cholesky(covariance);
}

// Without the directions in which L stretches by less than half: each costs 4 D multiplications per gradient.
Whitening without_idle(const Whitening& whitening) {
  constexpr double least = 1.5;
  std::vector<int> kept;
  const auto r = whitening.r();
  for (int k = 0; k < static_cast<int>(r.size()); ++k)
    if (std::abs(std::log(r[static_cast<std::size_t>(k)])) > std::log(least)) kept.push_back(k);
  Matrix<double> u(whitening.dimension(), static_cast<int>(kept.size()));
  std::vector<double> own;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    copy(whitening.u().column(kept[k]), u.column(static_cast<int>(k)));
    own.push_back(r[static_cast<std::size_t>(kept[k])]);
  }
  return Whitening::low_rank({whitening.mean().begin(), whitening.mean().end()},
                             {whitening.a().begin(), whitening.a().end()}, std::move(u), std::move(own));
}

Whitening shaped(const Whitening& whitening, Shape shape) {
  std::vector<double> mean(whitening.mean().begin(), whitening.mean().end());
  if (shape == Shape::low_rank) return without_idle(whitening);
  if (shape == Shape::dense) return Whitening::dense(std::move(mean), lower_factor(whitening));
  std::vector<double> sd = whitening.variances();
  for (double& x : sd) x = std::sqrt(x);
  return Whitening::diagonal(std::move(mean), std::move(sd));
}

// A rough estimate of the ELBO of a Gaussian from `draws` draws, each by to_z(e, z) of normals e; `log_det` is that of
// to_z. −∞ where one lies outside the support.
template <class ToZ>
double elbo_of(const Target& target, const RandomSource& random, int draws, double log_det, const ToZ& to_z) {
  const int d = target.dimension();
  Matrix<double> z(d, draws);
  std::vector<double> e(d), value(draws);
  double log_q = 0;
  for (int i = 0; i < draws; ++i) {
    random.normals({Purpose::draw, assessment_iteration, static_cast<std::uint32_t>(i)}, e);
    log_q -= 0.5 * dot(e, e);
    to_z(std::span(e), z.column(i));
  }
  target.evaluate(z, Want::value, value, {});
  double sum = 0;
  for (const double v : value) sum += v;
  const double result = (sum - log_q) / draws + 0.5 * d * log_two_pi + log_det;
  return std::isfinite(result) ? result : -infinity;
}

double rough_elbo(const Target& target, const Whitening& whitening, const RandomSource& random, int draws) {
  return elbo_of(target, random, draws, whitening.log_det(),
                 [&](std::span<const double> e, std::span<double> z) { whitening.to_z(e, z); });
}

// N(e + H ∇log p, H) of a point of a search: the maximum of the local quadratic model, with its curvature. `scales` are
// the diagonal coordinates of the search.
class QuadraticModel {
 public:
  QuadraticModel(const SearchPoint& point, const Whitening& scales)
      : h_(point.inverse_hessian), sd_(scales.a().begin(), scales.a().end()), mean_(sd_.size()) {
    std::vector<double> centre(point.z.size());
    h_.multiply(point.gradient, centre);
    add_scaled(1, point.z, centre);
    scales.to_z(centre, mean_);
  }
  Whitening whitening() const {
    InverseHessian::Factors factors = h_.factors();
    for (std::size_t i = 0; i < mean_.size(); ++i) factors.a[i] *= sd_[i];
    return Whitening::low_rank(mean_, std::move(factors.a), std::move(factors.u), std::move(factors.r));
  }
  double rough_elbo(const Target& target, const RandomSource& random) const {
    const InverseHessian::Root root(h_);
    double log_det = root.log_det();
    for (const double sd : sd_) log_det += std::log(sd);
    return elbo_of(target, random, path_draws, log_det, [&](std::span<double> e, std::span<double> z) {
      root.multiply(e);
      for (std::size_t i = 0; i < e.size(); ++i) z[i] = mean_[i] + sd_[i] * e[i];
    });
  }

 private:
  InverseHessian h_;
  std::vector<double> sd_, mean_;
};

// Coordinates about z in which the curvature of every coordinate alone is about one; as wide as `width` where it is not
// positive. Costs 2 D gradients.
Whitening curvature_scales(const Target& target, const std::vector<double>& z, std::span<const double> width) {
  const int d = target.dimension();
  std::vector<double> sd(width.begin(), width.end()), point(d), gradient(d);
  for (int i = 0; i < d; ++i) {
    const double h = 1e-4 * width[i];
    double side[2] = {}, value = 0;
    bool finite = true;
    for (const int k : {0, 1}) {
      point = z;
      point[i] += k == 0 ? h : -h;
      target.evaluate({point.data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
      side[k] = gradient[i];
      finite = finite && value != -infinity;
    }
    const double curvature = -(side[0] - side[1]) / (2 * h);
    if (finite && curvature > 0 && std::isfinite(curvature)) sd[i] = 1 / std::sqrt(curvature);
  }
  return Whitening::diagonal(z, std::move(sd));
}

// Independent coordinates about z by the diagonal of the Hessian, estimated from differences of gradients along
// `probes` random directions of signs v: E[v (H v)] = diag H. As wide as `width` where that is not positive.
Whitening probed_scales(const Target& target, const std::vector<double>& z, std::span<const double> width,
                        const RandomSource& random) {
  constexpr int probes = 8;
  constexpr double h = 1e-4;
  const int d = target.dimension();
  Matrix<double> point(d, 2 * probes), gradient(d, 2 * probes);
  std::vector<double> value(2 * probes), sign(d), sd(width.begin(), width.end()), curvature(d);
  for (int k = 0; k < probes; ++k) {
    random.uniforms({Purpose::proposal, assessment_iteration, static_cast<std::uint32_t>(k)}, sign);
    for (int i = 0; i < d; ++i) {
      const double step = (sign[i] < 0.5 ? -h : h) * width[i];
      point(i, 2 * k) = z[i] + step;
      point(i, 2 * k + 1) = z[i] - step;
    }
  }
  target.evaluate(point, Want::both, value, gradient);
  if (std::ranges::count(value, -infinity) > 0) return Whitening::diagonal(z, std::move(sd));
  for (int k = 0; k < probes; ++k)
    for (int i = 0; i < d; ++i)
      curvature[i] += (gradient(i, 2 * k + 1) - gradient(i, 2 * k)) / (point(i, 2 * k) - point(i, 2 * k + 1)) / probes;
  for (int i = 0; i < d; ++i)
    if (curvature[i] > 0 && std::isfinite(curvature[i])) sd[i] = 1 / std::sqrt(curvature[i]);
  return Whitening::diagonal(z, std::move(sd));
}

// Whether an approximation is so narrow that rounding decides what log p is there: in the neck of a funnel, whose
// density grows without bound, a search goes on until it sees nothing else.
bool too_narrow(std::span<const double> mean, std::span<const double> sd) {
  for (std::size_t i = 0; i < mean.size(); ++i)
    if (!(sd[i] > 1e-8 * (1e-3 + std::abs(mean[i])))) return true;
  return false;
}

// A point of finite density: uniform on the cube about 0 or about a point of `init`, or a wide draw. Cube and width
// shrink if the posterior is rarely finite. Nothing if it never is.
std::optional<std::vector<double>> finite_start(const Target& target, const StartConfig& config,
                                                const RandomSource& random, std::uint32_t index) {
  constexpr std::uint32_t attempts = 100;
  const int d = target.dimension(), given = config.init.cols();
  const int own = static_cast<int>(index);  // the point of `init` that this search begins at, if there is one
  std::vector<double> z(d), gradient(d);
  for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
    const double size = own < given ? 0 : config.radius * std::pow(0.95, attempt);
    if (config.about) {
      random.normals({Purpose::start, attempt, index}, gradient);
      for (double& x : gradient) x *= wide * std::pow(0.95, attempt);
      config.about->to_z(gradient, z);
    } else {
      random.uniforms({Purpose::start, attempt, index}, z);
      for (double& x : z) x = size * (2 * x - 1);
    }
    for (int i = 0; i < d && given > 0; ++i) z[i] += config.init(i, own % given);
    double value = 0;
    target.evaluate({z.data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
    if (value != -infinity) return z;
    if (own < given) throw InputError("init: the log density is not finite at point " + std::to_string(own + 1));
  }
  return std::nullopt;
}

// Random numbers of one start's ELBO estimates: the same along its way, so that points are compared fairly.
class Shifted final : public RandomSource {
 public:
  Shifted(const RandomSource& random, std::uint32_t index) : random_(random), index_(index) {}
  void normals(const Stream& s, std::span<double> out) const override { random_.normals(shift(s), out); }
  void uniforms(const Stream& s, std::span<double> out) const override { random_.uniforms(shift(s), out); }

 private:
  Stream shift(Stream s) const {
    s.step = index_;
    return s;
  }
  const RandomSource& random_;
  std::uint32_t index_;
};

// A search in rounds: coordinates whose scales differ by many powers of ten take too many iterations, so every round
// begins where the one before ended, in coordinates scaled by the curvature there.
LocalNormal search(const Target& target, std::vector<double> start, Shape shape, const RandomSource& random) {
  constexpr int rounds = 4, every = 4, all_until = 24;
  const auto size = start.size();
  std::optional<QuadraticModel> best_model;
  std::optional<Whitening> best;  // instead of best_model
  double best_elbo = -infinity;
  Whitening scales = Whitening::diagonal(start, std::vector<double>(size, 1.0));
  std::vector<double> e(size), z = start, width(size);
  SearchResult found;
  bool bottomless = false;
  for (int round = 0; round < rounds && !found.converged && !bottomless; ++round) {
    const WhitenedTarget scaled(target, scales);
    int seen = 0;
    const auto visit = [&](const SearchPoint& point) {
      for (std::size_t i = 0; i < size; ++i)
        width[i] = std::sqrt(point.inverse_hessian.diagonal()[i] * scales.variance(static_cast<int>(i)));
      scales.to_z(point.z, z);
      bottomless = too_narrow(z, width);
      if (bottomless) return false;
      if (++seen > all_until && seen % every != 0) return true;
      const auto improves = [&](double elbo) {
        if (!(elbo > best_elbo)) return false;
        best_elbo = elbo;
        return true;
      };
      QuadraticModel model(point, scales);
      if (improves(model.rough_elbo(target, random))) {
        best_model = std::move(model);
        best.reset();
      }
      if (shape == Shape::low_rank) {  // many dimensions, few pairs
        Whitening probed = probed_scales(target, z, width, random);
        if (improves(rough_elbo(target, probed, random, path_draws))) best = std::move(probed);
      }
      return true;
    };
    std::ranges::fill(e, 0.0);
    std::ranges::fill(width, 1.0);
    LbfgsConfig config;
    config.iterations = round == 0 ? 100 : 200;
    found = maximize(scaled, e, config, visit);
    scales.to_z(found.z, z);
    if (!found.converged && !bottomless && round + 1 < rounds) scales = curvature_scales(target, z, width);
  }
  if (!best && best_model) best = best_model->whitening();
  if (!best)  // every model had draws outside the support: use something narrow where the search ended
    best = Whitening::diagonal(z, std::vector<double>(size, 1e-3));
  Whitening model = shaped(*best, shape);
  const double elbo = rough_elbo(target, model, random, sharp_draws);  // a fairer estimate than the best of many
  return {.whitening = std::move(model),
          .elbo = elbo,
          .start = std::move(start),
          .end = std::move(z),
          .value = found.value,
          .converged = found.converged};
}

}  // namespace

std::vector<std::optional<LocalNormal>> search_from(const Target& target, const StartConfig& config,
                                                    const RandomSource& random, ItemRange which, Team& team) {
  std::vector<std::optional<LocalNormal>> found(which.count());
  team.for_shares(which.count(), [&](int begin, int end, int) {
    for (int k = begin; k < end; ++k) {
      const int number = which.begin + k;
      const auto index = config.first + static_cast<std::uint32_t>(number);
      std::optional<std::vector<double>> start;
      if (config.at.cols() > 0)
        start.emplace(config.at.column(number).begin(), config.at.column(number).end());
      else
        start = finite_start(target, config, random, index);
      if (start) found[k] = search(target, std::move(*start), config.shape, Shifted(random, index));
    }
  });
  return found;
}

std::vector<LocalNormal> found_by(std::vector<std::optional<LocalNormal>> searches, const StartConfig& config) {
  std::vector<LocalNormal> result;
  for (auto& local : searches)
    if (local) result.push_back(std::move(*local));
  if (result.empty() && config.first == 0)
    throw NowhereFinite("the log density is not finite at any of " + std::to_string(100 * config.starts) +
                        " random points; check the data and the model's limits");
  return result;
}

std::vector<LocalNormal> find_local_normals(const Target& target, const StartConfig& config, const RandomSource& random,
                                            Team& team) {
  if (config.starts < 1) throw InputError("the number of starts must be at least 1");
  return found_by(search_from(target, config, random, {0, config.starts}, team), config);
}

Matrix<double> surplus_points(const Target& target, const Whitening& gaussian, double log_mass, const Shells& shells,
                              const RandomSource& random, Team& team) {
  constexpr double narrowest = 1.5, widest = 12, surplus = 3;  // nats, beside a Gaussian with sds 1.15 times as large
  constexpr double flatter = 0.75;                             // its share of |e|²: the search's sds are rough
  const int d = target.dimension(), each = shells.values, size = std::min(each, batch_size(target));
  const int batches = (each + size - 1) / size;  // per shell
  const double log_constant = log_mass - 0.5 * d * log_two_pi - gaussian.log_det();
  struct Highest {
    double value = -infinity;
    std::vector<double> z;
  };
  std::vector<Highest> found(static_cast<std::size_t>(shells.count * batches));
  team.for_shares(shells.count * batches, [&](int begin, int end, int) {
    std::vector<double> e(d), within(each);
    for (int item = begin; item < end; ++item) {
      const int k = item / batches, first = item % batches * size, count = std::min(size, each - first);
      const auto shell = static_cast<std::uint32_t>(k);
      random.uniforms({Purpose::start, surplus_iteration, shell}, within);
      Matrix<double> z(d, count);
      std::vector<double> value(count), radius(count);
      for (int i = 0; i < count; ++i) {
        random.normals({Purpose::start, surplus_iteration + 1 + static_cast<std::uint32_t>(first + i), shell}, e);
        radius[i] = narrowest * std::pow(widest / narrowest, (k + within[first + i]) / shells.count) * std::sqrt(d);
        const double by = radius[i] / std::sqrt(dot(e, e));
        for (double& x : e) x *= by;
        gaussian.to_z(e, z.column(i));
      }
      target.evaluate(z, Want::value, value, {});
      Highest& best = found[static_cast<std::size_t>(item)];
      for (int i = 0; i < count; ++i) {
        if (!(value[i] > best.value) || !(value[i] > log_constant - 0.5 * flatter * square(radius[i]) + surplus))
          continue;
        best.value = value[i];
        best.z.assign(z.column(i).begin(), z.column(i).end());
      }
    }
  });
  std::vector<const Highest*> tops;  // of the shells
  for (int k = 0; k < shells.count; ++k) {
    const auto of_shell =
        std::span(found).subspan(static_cast<std::size_t>(k * batches), static_cast<std::size_t>(batches));
    const auto top = std::ranges::max_element(of_shell, {}, &Highest::value);  // the first of equal ones
    if (top->value != -infinity) tops.push_back(&*top);
  }
  Matrix<double> result(d, static_cast<int>(tops.size()));
  for (int k = 0; k < result.cols(); ++k) copy(tops[static_cast<std::size_t>(k)]->z, result.column(k));
  return result;
}

std::optional<Quadratic> quadratic_about(const Target& target, const Whitening& whitening, Team& team) {
  const int d = target.dimension();
  constexpr double h = 1e-3;
  const WhitenedTarget whitened(target, whitening);
  Matrix<double> e(d, 2 * d), gradient(d, 2 * d), curvature(d, d);
  for (int i = 0; i < d; ++i) {
    e(i, 2 * i) = h;
    e(i, 2 * i + 1) = -h;
  }
  std::vector<double> value(2 * d);
  evaluate_in_batches(whitened, e, Want::both, value, gradient, team);
  if (std::ranges::count(value, -infinity) > 0) return std::nullopt;
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) {
      const double second = -(gradient(j, 2 * i) - gradient(j, 2 * i + 1)) / (2 * h);
      curvature(i, j) += 0.5 * second;
      curvature(j, i) += 0.5 * second;
    }
  try {
    const std::vector<double> root = cholesky(curvature);  // curvature = R Rᵀ
    Matrix<double> covariance(d, d);
    Quadratic result{std::vector<double>(d), {}};
    std::vector<double> centre(d);
    for (int i = 0; i < d; ++i) {
      covariance(i, i) = 1;
      solve_lower(root, covariance.column(i), covariance.column(i));
      solve_lower_transposed(root, covariance.column(i), covariance.column(i));
      for (int k = 0; k < 2 * d; ++k) centre[i] += gradient(i, k) / (2 * d);
    }
    for (int i = 0; i < d; ++i)
      for (int j = 0; j < d; ++j) result.shift[i] += covariance(i, j) * centre[j];
    result.root = cholesky(covariance);
    return result;
  } catch (const InputError&) {  // not positive definite
    return std::nullopt;
  }
}

void sharpen(const Target& target, const RandomSource& random, LocalNormal& local, Team& team) {
  LocalNormal sharper = local;
  if (local.whitening.is_dense()) {
    const std::optional<Quadratic> model = quadratic_about(target, local.whitening, team);
    if (!model) return;
    sharper.whitening = local.whitening.then_lower(model->shift, model->root);
  } else {
    std::vector<double> width = local.whitening.variances();
    for (double& x : width) x = std::sqrt(x);
    sharper.whitening = curvature_scales(target, local.end, width);
  }
  sharper.elbo = rough_elbo(target, sharper.whitening, random, sharp_draws);
  local.elbo = rough_elbo(target, local.whitening, random, sharp_draws);
  if (sharper.elbo > local.elbo) local = std::move(sharper);
}

}  // namespace hone
