#include "hone/assess/map_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

using Shape = TransportMap::Shape;
using Term = TransportMap::Term;
using Values = std::vector<double>;

// What one coordinate offers to others: features, and their values at all states.
struct Feature {
  Term term;
  bool of_location;
  Values at, squares;        // squares: of a location's features
  double mean = 0, own = 0;  // and Σ (at − mean)²
};
struct Coordinate {
  Values x;
  std::vector<Feature> features;
};

// Values minus their mean, over their sd; zeros where they do not vary.
Values standardised(Values x) {
  Moments moments;
  for (const double v : x) moments.add(v);
  const double sd = moments.sd();
  for (double& v : x) v = sd > 0 ? (v - moments.mean()) / sd : 0;
  return x;
}

Coordinate coordinate_of(MatrixView<const double> points, int k) {
  Coordinate result;
  Moments moments;
  for (int c = 0; c < points.cols(); ++c) {
    result.x.push_back(points(k, c));
    moments.add(result.x.back());
  }
  const double sd = std::max(moments.sd(), 1e-300);
  Values sorted = result.x;
  constexpr double seldom = 0.01, beyond = 0.5, far_beyond = 4, bend = 0.25;  // the last three in sds
  const double low = quantile_of(sorted, seldom), high = quantile_of(sorted, 1 - seldom);
  // Scales level off soon where no states were: a wrong one there makes trajectories diverge.
  const auto offer = [&](bool of_location, Shape shape, double knot) {
    const double reach = sd * (of_location ? far_beyond : beyond);
    Feature feature{.term = {.from = k,
                             .shape = shape,
                             .low = low - reach,
                             .high = high + reach,
                             .width = sd,
                             .knot = knot,
                             .bend = bend * sd},
                    .of_location = of_location,
                    .at = {},
                    .squares = {}};
    Moments values;
    for (const double v : result.x) {
      feature.at.push_back(feature.term.feature(v));
      values.add(feature.at.back());
      if (of_location) feature.squares.push_back(square(feature.at.back()));
    }
    feature.mean = values.mean();
    feature.own = values.raw().squares;
    result.features.push_back(std::move(feature));
  };
  offer(true, Shape::linear, 0);
  offer(true, Shape::square, 0);
  offer(false, Shape::level, 0);
  for (const double p : {0.25, 0.5, 0.75}) offer(false, Shape::hinge, quantile_of(sorted, p));
  return result;
}

// The mean gain of a regression that explains this share of the variance, in nats; 0 if chance explains it.
double nats(double share, double chance) { return share > chance ? -0.5 * std::log1p(-std::min(share, 0.999)) : 0; }

// The regression of one coordinate on those before it, by maximum likelihood.
class RowFit {
 public:
  RowFit(const std::vector<Coordinate>& coordinates, int coordinate)
      : coordinates_(coordinates), y_(coordinates[coordinate].x), ones_(y_.size(), 1.0) {
    row_.coordinate = coordinate;
    fit();
  }

  // Adds terms as long as one gains more than chance, and enough to matter.
  TransportMap::Row grown(std::span<const int> before, double effective) {
    constexpr int most_terms = 10;
    constexpr double matters = 0.02;                        // nats
    const double least = std::max(matters, 8 / effective);  // of the gain
    for (int count = 0; count < most_terms; ++count) {
      const Feature* const best = best_of(before, least);
      if (!best) break;
      const double value = value_;
      const TransportMap::Row old = row_;
      (best->of_location ? row_.location : row_.scale).push_back(best->term);
      (best->of_location ? in_location_ : in_scale_).push_back(best);
      fit();
      if (value_ > value + 0.5 * least) continue;
      row_ = old;
      value_ = value;
      break;
    }
    return row_;
  }

  // What the terms of one other coordinate gain.
  double gain_by(int other, double effective) {
    const double value = value_;
    grown({&other, 1}, effective);
    return value_ - value;
  }

 private:
  const Feature* best_of(std::span<const int> before, double least) const {
    const auto n = static_cast<double>(y_.size());
    Values weighted(y_.size()), surplus(y_.size());
    double weights = 0, squares = 0, pull = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double q = weight_[i] * square(residual_[i]);
      weighted[i] = weight_[i] * residual_[i];
      pull += weighted[i];
      weights += weight_[i];
      squares += q;
      surplus[i] = std::min(q, 8.0);
    }
    surplus = standardised(std::move(surplus));
    const Feature* best = nullptr;
    for (const int k : before)
      for (const Feature& feature : coordinates_[k].features) {
        const auto& used = feature.of_location ? in_location_ : in_scale_;
        if (std::ranges::find(used, &feature) != used.end()) continue;
        double own = feature.own, cross = 0;
        if (feature.of_location) {
          const double mean = dot(weight_, feature.at);
          own = dot(weight_, feature.squares) - square(mean) / weights;
          cross = dot(weighted, feature.at) - pull * mean / weights;
        } else {
          cross = dot(surplus, feature.at);
        }
        const double share = own > 0 ? square(cross) / (own * (feature.of_location ? squares : n)) : 0;
        const double gain = nats(share, 0);
        if (!(gain > least)) continue;
        least = gain;
        best = &feature;
      }
    return best;
  }

  // Location by weighted least squares and log scale by Fisher's scoring, in turn.
  void fit() {
    constexpr int rounds = 8;
    constexpr double settled = 1e-3;
    update();
    for (int round = 0; round < rounds; ++round) {
      const double value = value_;
      fit_location();
      fit_scale();
      fit_scale();
      if (value_ - value < settled) break;
    }
  }

  // Residuals, log scales, and the mean log density.
  void update() {
    residual_ = y_;
    for (double& v : residual_) v -= row_.shift;
    scale_.assign(y_.size(), row_.log_scale);
    for (std::size_t t = 0; t < in_location_.size(); ++t)
      add_scaled(-row_.location[t].factor, in_location_[t]->at, residual_);
    for (std::size_t t = 0; t < in_scale_.size(); ++t) add_scaled(row_.scale[t].factor, in_scale_[t]->at, scale_);
    weight_.resize(y_.size());
    value_ = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      weight_[i] = std::exp(-2 * scale_[i]);
      value_ -= (scale_[i] + 0.5 * square(residual_[i]) * weight_[i]) / static_cast<double>(y_.size());
    }
  }

  // x with Σ_b (Σ_i w_i f_ai f_bi) x_b = Σ_i t_i f_ai, and a little on the diagonal; f_0 is the constant.
  Values solved(const std::vector<const Feature*>& features, const Values& w, const Values& t) const {
    const int m = static_cast<int>(features.size()) + 1;
    const auto values = [&](int a) -> const Values& { return a == 0 ? ones_ : features[a - 1]->at; };
    Matrix<double> normal(m, m);
    Values weighted(y_.size()), x(m);
    for (int a = 0; a < m; ++a) {
      const Values& f = values(a);
      for (std::size_t i = 0; i < f.size(); ++i) weighted[i] = w[i] * f[i];
      for (int b = 0; b <= a; ++b) normal(a, b) = normal(b, a) = dot(weighted, values(b));
      x[a] = dot(t, f);
    }
    for (int a = 0; a < m; ++a) normal(a, a) += 1e-8 * normal(a, a) + 1e-12;
    const Values lower = cholesky(normal);
    solve_lower(lower, x, x);
    solve_lower_transposed(lower, x, x);
    return x;
  }

  void fit_location() {
    Values t(y_.size());
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = weight_[i] * residual_[i];
    step(row_.shift, row_.location, solved(in_location_, weight_, t));
  }

  void fit_scale() {
    constexpr double most = 20;  // where the scale is far too small, Fisher's step would be too long
    Values t(y_.size());
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = std::min(most, square(residual_[i]) * weight_[i] - 1);
    step(row_.log_scale, row_.scale, solved(in_scale_, Values(y_.size(), 2.0), t));
  }

  // The whole step, or as much of it as raises the likelihood.
  void step(double& constant, std::vector<Term>& terms, const Values& by) {
    const double value = value_;
    const auto move = [&](double part) {
      constant += part * by[0];
      for (std::size_t t = 0; t < terms.size(); ++t) terms[t].factor += part * by[t + 1];
      update();
    };
    double part = 1;
    move(part);
    for (int halving = 0; !(value_ >= value); ++halving) {
      move(-part);
      if (halving == 6) return;
      part *= 0.5;
      move(part);
    }
  }

  const std::vector<Coordinate>& coordinates_;
  const Values& y_;
  const Values ones_;
  TransportMap::Row row_;
  std::vector<const Feature*> in_location_, in_scale_;  // of the terms of row_
  Values residual_, scale_, weight_;
  double value_ = 0;
};

// Two coordinates of which one seems to set location or scale of the other. Their squares tell no direction: the mean
// of a square is a scale, so both explain each other alike.
struct Related {
  int one, other;
  double share;  // of the variance that is explained
};

// The pairs that chance does not explain, the closest ones first.
std::vector<Related> related(const std::vector<Coordinate>& coordinates, double effective) {
  const int d = static_cast<int>(coordinates.size());
  const double n = static_cast<double>(coordinates[0].x.size());
  const double chance = (10 + 2 * std::log(static_cast<double>(d))) / effective;
  std::vector<Values> linear, squares;  // large squares are bounded
  for (const Coordinate& coordinate : coordinates) {
    linear.push_back(standardised(coordinate.x));
    Values bounded = linear.back();
    for (double& v : bounded) v = std::min(square(v), 8.0);
    squares.push_back(standardised(std::move(bounded)));
  }
  std::vector<Related> result;
  for (int k = 0; k < d; ++k)
    for (int j = 0; j < k; ++j) {
      const double share = (square(dot(squares[j], linear[k])) + square(dot(linear[j], squares[k])) +
                            square(dot(squares[j], squares[k]))) /
                           square(n);
      if (share > chance) result.push_back({j, k, share});
    }
  std::ranges::stable_sort(result, std::greater<>(), &Related::share);
  return result;
}

// By how many nats more each coordinate explains others than they explain it.
Values net_gains(const std::vector<Coordinate>& coordinates, std::span<const Related> pairs, double effective) {
  Values net(coordinates.size());
  const auto gain = [&](int of, int by) { return RowFit(coordinates, of).gain_by(by, effective); };
  for (const Related& pair : pairs) {
    const double difference = gain(pair.other, pair.one) - gain(pair.one, pair.other);
    net[pair.one] += difference;
    net[pair.other] -= difference;
  }
  return net;
}

// The coordinates in an order in which those that others depend on come first.
std::vector<int> by_gain(const Values& net) {
  std::vector<int> order(net.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return net[a] > net[b]; });
  return order;
}

// At most `most` of the states, evenly over all of them.
Matrix<double> some_points(const ChainStates& states, int most) {
  const int stride = (states.count() + most - 1) / most;
  Matrix<double> points(states.z.rows(), (states.count() + stride - 1) / stride);
  for (int c = 0; c < points.cols(); ++c) copy(states.z.column(c * stride), points.column(c));
  return points;
}

std::vector<Coordinate> coordinates_of(MatrixView<const double> points) {
  std::vector<Coordinate> result;
  for (int k = 0; k < points.rows(); ++k) result.push_back(coordinate_of(points, k));
  return result;
}

Matrix<double> rotated(const Rotation& rotation, Matrix<double> points) {
  if (!rotation) return points;
  Matrix<double> result(points.rows(), points.cols());
  for (int c = 0; c < points.cols(); ++c)
    for (int i = 0; i < points.rows(); ++i) add_scaled(points(i, c), rotation->column(i), result.column(c));
  return result;
}

// The closest pairs, not more than matter for an order.
std::span<const Related> closest(std::span<const Related> pairs, std::size_t coordinates) {
  return pairs.first(std::min(pairs.size(), 2 * coordinates));
}

// The coordinates of z itself that set location or scale of others, those that matter most first.
std::vector<int> leading_of(const Whitening& whitening, const Matrix<double>& e, double effective) {
  Matrix<double> z(e.rows(), e.cols());
  whitening.to_z(e, z);
  const std::vector<Coordinate> coordinates = coordinates_of(z);
  const std::vector<Related> pairs = related(coordinates, effective);
  const Values net = net_gains(coordinates, closest(pairs, coordinates.size()), effective);
  constexpr double matters = 0.02;  // nats
  std::vector<int> order = by_gain(net);
  std::erase_if(order, [&](int k) { return !(net[k] > matters); });
  return order;
}

// Which of the coordinates before it a row may depend on: all, or in many dimensions the first ones and those that its
// coordinate is related to.
std::vector<int> candidates_of(int coordinate, std::span<const int> before, std::span<const Related> pairs) {
  constexpr std::size_t all = 40, first = 16;
  std::vector<int> result(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(std::min(all, before.size())));
  if (before.size() <= all) return result;
  result.resize(first);
  for (const int k : before.subspan(first))
    if (std::ranges::any_of(pairs, [&](const Related& p) {
          return (p.one == k && p.other == coordinate) || (p.other == k && p.one == coordinate);
        }))
      result.push_back(k);
  return result;
}

// Scales go on shrinking where no states were, as towards the neck of a funnel: if that is wrong, chains are slow
// there, but if it is right and left out, they cannot enter. Where scales grow, they level off: too large ones diverge.
void shrink_further(TransportMap::Row& row) {
  for (Term& term : row.scale) (term.factor > 0 ? term.low : term.high) = term.factor > 0 ? -infinity : infinity;
}

ChainStates half_of(const ChainStates& all, int which) {
  const int half = all.chains / 2, first = which * half * all.per_chain();
  ChainStates result(all.z.rows(), half, all.per_chain());
  copy(all.z.view().columns(first, first + result.count()).flat(), result.z.view().flat());
  return result;
}

}  // namespace

std::optional<TransportMap> fitted_map(const ChainStates& states, double effective, const Whitening* whitening) try {
  const int d = states.z.rows();
  constexpr int least_states = 64, few = 512;  // few: for pairs
  constexpr int most_dimensions = 300;         // each coordinate is compared with every other
  if (d < 2 || d > most_dimensions || states.count() < least_states) return std::nullopt;
  const int most_states = std::clamp(80'000 / d, few, 2048);  // in many dimensions fewer: time grows with d² of them
  Rotation rotation;
  const Matrix<double> some = some_points(states, few);
  if (whitening && whitening->is_dense()) rotation = hubs_first(*whitening, leading_of(*whitening, some, effective));
  const std::vector<Coordinate> coordinates = coordinates_of(rotated(rotation, some_points(states, most_states)));
  const std::vector<Related> all = related(coordinates, effective);
  if (all.empty()) return std::nullopt;
  const std::vector<Coordinate> fewer = coordinates_of(rotated(rotation, some));
  const std::vector<int> order = by_gain(net_gains(fewer, closest(all, coordinates.size()), effective));
  std::vector<TransportMap::Row> rows;
  for (std::size_t at = 1; at < order.size(); ++at) {
    const std::vector<int> candidates = candidates_of(order[at], std::span(order).first(at), all);
    TransportMap::Row row = RowFit(coordinates, order[at]).grown(candidates, effective);
    if (row.location.empty() && row.scale.empty()) continue;
    shrink_further(row);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return std::nullopt;
  return TransportMap(d, std::move(rows), rotation);
} catch (const InputError&) {  // features that depend on each other, or are not finite
  return std::nullopt;
}

double gain_of_map(const TransportMap& map, const ChainStates& states) {
  const int d = states.z.rows();
  std::vector<double> u(d), trace(map.trace_size());
  std::vector<Moments> before(d), after(d);
  double sum = 0;
  for (int c = 0; c < states.count(); ++c) {
    sum -= map.to_u(states.z.column(c), u, trace);
    for (int k = 0; k < d; ++k) before[k].add(states.z(k, c)), after[k].add(trace[k]);
    for (const TransportMap::Row& row : map.rows()) sum -= 0.5 * square(u[row.coordinate]);
  }
  const auto log_sd = [](const Moments& moments) { return std::log(std::max(moments.sd(), 1e-300)); };
  double gain = sum / states.count() + 0.5 * static_cast<double>(map.rows().size());
  for (int k = 0; k < d; ++k) gain += log_sd(before[k]) - log_sd(after[k]);
  for (const TransportMap::Row& row : map.rows()) gain += log_sd(after[row.coordinate]);
  return gain;
}

std::shared_ptr<const TransportMap> better_map(const ChainStates& states, double effective, const TransportMap* present,
                                               const Whitening* whitening) {
  constexpr double much = 0.2, part = 0.1;  // nats, and of what there is
  std::optional<TransportMap> map = fitted_map(states, effective, whitening);
  if (!map) return nullptr;
  const double now = present ? gain_of_map(*present, states) : 0;
  if (!(gain_of_map(*map, states) > now + part * std::max(0.0, now) + much)) return nullptr;
  // Chains that began at one start may look as if they followed each other; others do not.
  double elsewhere = 0;
  for (const int half : {0, 1})
    if (const auto other = fitted_map(half_of(states, half), 0.5 * effective, whitening))
      elsewhere += gain_of_map(*other, half_of(states, 1 - half));
  if (!(elsewhere > 0)) return nullptr;
  return std::make_shared<const TransportMap>(*std::move(map));
}

}  // namespace hone
