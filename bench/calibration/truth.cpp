#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/calibration/cases.hpp"
#include "bench/calibration/nuts.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"

namespace hone::calibration {

Truth closed_form(const std::vector<std::string>& names, const std::function<void(std::size_t, Known&)>& formula) {
  Truth truth;
  for (std::size_t i = 0; i < names.size(); ++i) formula(i, truth.emplace_back(Known{.name = names[i]}));
  return truth;
}

namespace {

using Values = std::vector<double>;
constexpr int chains = 8;

// Draws of all chains over z, after warm-up.
std::vector<Matrix<double>> draws_of(const Posterior& posterior, int draws, double acceptance) {
  std::vector<Matrix<double>> result;
  std::int64_t divergences = 0;
  for (std::uint64_t chain = 1; chain <= chains; ++chain) {
    Nuts nuts(posterior, acceptance, chain);
    nuts.warm_up();
    Matrix<double> z(posterior.dimension(), draws);
    for (int i = 0; i < draws; ++i) std::ranges::copy(nuts.next(), z.column(i).begin());
    divergences += nuts.divergences();
    result.push_back(std::move(z));
  }
  if (divergences > 0) fmt::print(stderr, "  {} divergences\n", divergences);
  return result;
}

double quantile(Values& values, double p) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

// Centre and spread of the values, and the centre's error from the centres of `batches` stretches of each chain.
Known summary_of(const std::string& name, const std::vector<Values>& by_chain, By by) {
  constexpr std::size_t batches = 20;
  Moments all, centres;
  Values joined;
  for (const Values& chain : by_chain) {
    const std::size_t length = chain.size() / batches;
    for (std::size_t b = 0; b < batches; ++b) {
      Values part(chain.begin() + static_cast<std::ptrdiff_t>(b * length),
                  chain.begin() + static_cast<std::ptrdiff_t>((b + 1) * length));
      Moments moments;
      for (const double x : part) moments.add(x);
      centres.add(by == By::moments ? moments.mean() : quantile(part, 0.5));
    }
    for (const double x : chain) all.add(x), joined.push_back(x);
  }
  Known known{.name = name, .by = by, .centre = all.mean(), .spread = all.sd()};
  if (by == By::quantiles) {
    known.centre = quantile(joined, 0.5);
    known.spread = (quantile(joined, 0.95) - quantile(joined, 0.05)) / quantile_width;
  }
  known.error = centres.estimate().se / known.spread;
  return known;
}

// The box of a grid: centre and axes from the draws of a sampler, and how far they went along each axis.
struct Box {
  Values centre, axes, low, high;  // axes: lower Cholesky factor of the covariance, by rows
};

Box box_of(const Posterior& posterior) {
  const auto d = static_cast<std::size_t>(posterior.dimension());
  const auto draws = draws_of(posterior, 1500, 0.9);
  Box box{Values(d), Values(d * d), Values(d, infinity), Values(d, -infinity)};
  double n = 0;
  const auto each = [&](const auto& visit) {
    for (const auto& chain : draws)
      for (int i = 0; i < chain.cols(); ++i) visit(chain.column(i));
  };
  each([&](auto) { ++n; });
  each([&](auto z) {
    for (std::size_t i = 0; i < d; ++i) box.centre[i] += z[i] / n;
  });
  each([&](auto z) {
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j <= i; ++j) box.axes[i * d + j] += (z[i] - box.centre[i]) * (z[j] - box.centre[j]) / n;
  });
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < j; ++k) box.axes[j * d + j] -= square(box.axes[j * d + k]);
    box.axes[j * d + j] = std::sqrt(box.axes[j * d + j]);
    for (std::size_t i = j + 1; i < d; ++i) {
      for (std::size_t k = 0; k < j; ++k) box.axes[i * d + j] -= box.axes[i * d + k] * box.axes[j * d + k];
      box.axes[i * d + j] /= box.axes[j * d + j];
    }
  }
  each([&](auto z) {
    Values e(d);
    for (std::size_t i = 0; i < d; ++i) {
      e[i] = z[i] - box.centre[i];
      for (std::size_t j = 0; j < i; ++j) e[i] -= box.axes[i * d + j] * e[j];
      e[i] /= box.axes[i * d + i];
      box.low[i] = std::min(box.low[i], e[i]), box.high[i] = std::max(box.high[i], e[i]);
    }
  });
  for (std::size_t i = 0; i < d; ++i) {
    const double more = 0.7 * (box.high[i] - box.low[i]);
    box.low[i] -= more, box.high[i] += more;
  }
  return box;
}

// Sums over a grid: total mass, first and second moments of the natural values, and mass on the box's faces.
struct GridSums {
  double mass = 0, faces = 0;
  Values first, second;
};

GridSums sums_over(const Posterior& posterior, const Box& box, int points, double offset) {
  const auto d = static_cast<std::size_t>(posterior.dimension());
  GridSums sums{.first = Values(posterior.names().size()), .second = Values(posterior.names().size())};
  std::vector<int> at(d);
  Values e(d), z(d), x(posterior.names().size());
  for (bool more = true; more;) {
    for (std::size_t i = 0; i < d; ++i) e[i] = box.low[i] + (box.high[i] - box.low[i]) * at[i] / (points - 1);
    for (std::size_t i = 0; i < d; ++i) {
      z[i] = box.centre[i];
      for (std::size_t j = 0; j <= i; ++j) z[i] += box.axes[i * d + j] * e[j];
    }
    double value = -infinity;
    posterior.evaluate({z.data(), static_cast<int>(d), 1}, Want::value, {&value, 1}, {});
    const double p = std::exp(value - offset);
    if (p > 0) {
      posterior.constrain(z, x);
      sums.mass += p;
      if (std::ranges::any_of(at, [&](int k) { return k == 0 || k == points - 1; })) sums.faces += p;
      for (std::size_t k = 0; k < x.size(); ++k) sums.first[k] += p * x[k], sums.second[k] += p * x[k] * x[k];
    }
    std::size_t i = 0;
    while (i < d && ++at[i] == points) at[i++] = 0;
    more = i < d;
  }
  return sums;
}

}  // namespace

Truth by_grid(const Maker& make, int points) {
  const auto posterior = make();
  const Box box = box_of(*posterior);
  double offset = 0;
  posterior->evaluate({box.centre.data(), posterior->dimension(), 1}, Want::value, {&offset, 1}, {});
  const GridSums fine = sums_over(*posterior, box, points, offset);
  const GridSums coarse = sums_over(*posterior, box, points * 2 / 3, offset);
  if (fine.faces > 1e-6 * fine.mass)
    throw Error(fmt::format("the grid cuts off {:.1e} of the mass at its faces", fine.faces / fine.mass));
  Truth truth;
  for (std::size_t k = 0; k < posterior->names().size(); ++k) {
    const double mean = fine.first[k] / fine.mass, sd = std::sqrt(fine.second[k] / fine.mass - mean * mean);
    const double rough = coarse.first[k] / coarse.mass;
    if (std::abs(rough - mean) > 1e-4 * sd) throw Error("the grid is too coarse for " + posterior->names()[k]);
    truth.push_back({.name = posterior->names()[k], .centre = mean, .spread = sd});
  }
  return truth;
}

Truth by_nuts(const Maker& make, const LongRun& run) {
  const auto posterior = make();
  const auto draws = draws_of(*posterior, run.draws, run.acceptance);
  const std::size_t count = posterior->names().size();
  std::vector<std::vector<Values>> values(count, std::vector<Values>(draws.size(), Values(run.draws)));
  Values x(count);
  for (std::size_t chain = 0; chain < draws.size(); ++chain)
    for (int i = 0; i < run.draws; ++i) {
      posterior->constrain(draws[chain].column(i), x);
      for (std::size_t k = 0; k < count; ++k) values[k][chain][i] = x[k];
    }
  Truth truth;
  for (std::size_t k = 0; k < count; ++k) {
    const std::string& name = posterior->names()[k];
    const bool quantiles = run.by_quantiles.contains(name.substr(0, name.find('.')));
    truth.push_back(summary_of(name, values[k], quantiles ? By::quantiles : By::moments));
    if (!(truth.back().error < 0.01))
      throw Error(fmt::format("{}: its error is {:.3f} sd, should be below 0.01", name, truth.back().error));
  }
  return truth;
}

void write_references(const std::string& path, const std::vector<Case>& cases, const std::vector<Truth>& truths) {
  std::ofstream out(path);
  out << "posterior,how,value,by,centre,spread,error\n";
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (cases[i].kept == Kept::yes)
      for (const Known& k : truths[i])
        out << fmt::format("{},{},{},{},{:.10g},{:.10g},{:.2g}\n", cases[i].name, '"' + cases[i].how + '"', k.name,
                           k.by == By::moments ? "moments" : "quantiles", k.centre, k.spread, k.error);
  if (!out.flush()) throw InputError("cannot write '" + path + "'");
}

std::vector<Truth> kept_references(const std::string& path, const std::vector<Case>& cases) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);  // the header
  std::map<std::string, Truth> known;
  for (int number = 2; std::getline(in, line); ++number) {
    const std::size_t first = line.find(",\""), second = line.find("\",");
    std::istringstream rest(second == std::string::npos ? "" : line.substr(second + 2));
    Known k;
    std::string by, numbers;
    std::getline(rest, k.name, ','), std::getline(rest, by, ','), std::getline(rest, numbers);
    if (std::sscanf(numbers.c_str(), "%lf,%lf,%lf", &k.centre, &k.spread, &k.error) != 3 ||
        (by != "moments" && by != "quantiles"))
      throw InputError(
          fmt::format("'{}', line {}: expected posterior,\"how\",value,by,centre,spread,error", path, number));
    k.by = by == "moments" ? By::moments : By::quantiles;
    known[line.substr(0, first)].push_back(k);
  }
  std::vector<Truth> truths;
  for (const Case& one : cases) truths.push_back(known[one.name]);
  return truths;
}

std::vector<Truth> read_references(const std::string& path, const std::vector<Case>& cases) {
  std::vector<Truth> truths = kept_references(path, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].truth && cases[i].kept == Kept::no) truths[i] = cases[i].truth();
    if (cases[i].truth && truths[i].empty())
      throw InputError(fmt::format("'{}' has no line for '{}': run calibration --reference --only {}", path,
                                   cases[i].name, cases[i].name));
  }
  return truths;
}

}  // namespace hone::calibration
