#include "hone/target/posterior.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace hone {

Matrix<double> natural_values(const Posterior& posterior, MatrixView<const double> z) {
  Matrix<double> result(static_cast<int>(posterior.names().size()), z.cols());
  for (int i = 0; i < z.cols(); ++i) try {
      posterior.constrain(z.column(i), result.column(i));
    } catch (const Error&) {
      std::ranges::fill(result.column(i), std::nan(""));
    }
  return result;
}

namespace {

// How a value x on the natural scale depends on its coordinate z, as a word before its name; several pairs of them.
std::string relation(std::span<const double> x, std::span<const double> z) {
  const auto all = [&](auto&& f) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!(std::abs(f(x[i]) - z[i]) <= 1e-9 * (1 + std::abs(z[i])))) return false;
    return true;
  };
  if (all([](double v) { return v; })) return "";
  if (all([](double v) { return std::log(v); })) return "log ";
  if (all([](double v) { return std::log(v / (1 - v)); })) return "logit ";
  return "unconstrained ";
}

// "theta" of "theta.1.2": what all elements of a variable have in common.
std::string_view variable_of(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::vector<std::string> coordinate_words(const Posterior& posterior, MatrixView<const double> z) {
  const int points = std::min(z.cols(), 3);
  const Matrix<double> natural = natural_values(posterior, z.columns(0, points));
  const auto& names = posterior.names();
  std::unordered_map<std::string_view, int> place;
  std::unordered_set<std::string_view> variables;
  for (std::size_t k = 0; k < names.size(); ++k) {
    place.emplace(names[k], static_cast<int>(k));
    variables.insert(variable_of(names[k]));
  }
  std::vector<std::string> words = posterior.coordinate_names();
  std::vector<double> x(static_cast<std::size_t>(points)), own(x.size());
  for (std::size_t k = 0; k < words.size(); ++k) {
    const auto found = place.find(words[k]);
    if (found == place.end()) {  // as the seventh coordinate of a matrix, whose elements have two indices
      if (variables.contains(variable_of(words[k]))) words[k] = "unconstrained " + words[k];
      continue;
    }
    for (int i = 0; i < points; ++i) {
      x[static_cast<std::size_t>(i)] = natural(found->second, i);
      own[static_cast<std::size_t>(i)] = z(static_cast<int>(k), i);
    }
    words[k] = relation(x, own) + words[k];
  }
  return words;
}

}  // namespace hone
