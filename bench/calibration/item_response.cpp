#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

constexpr std::size_t persons = 30, items = 10;

// y_ij ~ Bernoulli(sigmoid(a_j (theta_i − b_j))), a_j = 1 in the one-parameter model.
enum class Parameters { one, two };
Maker item_response(Parameters parameters) {
  const bool two = parameters == Parameters::two;
  Simulation simulation(two ? 42 : 41);
  const Values theta = simulation.normals(persons), b = simulation.normals(items);
  Values y;
  for (const double ability : theta)
    for (std::size_t j = 0; j < items; ++j)
      y.push_back(simulation.bernoulli(sigmoid((two ? 0.6 + 0.2 * static_cast<double>(j) : 1) * (ability - b[j]))));
  auto names = list(numbered("theta", persons), numbered("b", items));
  std::vector<Scale> scales(names.size(), Scale::real);
  if (two) names = list(names, numbered("a", items)), scales.resize(names.size(), Scale::positive);
  const auto natural = [=](At x, Slope slope) {
    constexpr std::size_t at_b = persons, at_a = persons + items;
    double value = 0;
    for (std::size_t i = 0; i < persons; ++i) value += normal_prior(x[i], 1, slope[i]);
    for (std::size_t j = 0; j < items; ++j) {
      value += normal_prior(x[at_b + j], 1.5, slope[at_b + j]);
      if (two) value += lognormal_prior(x[at_a + j], 0, 0.5, slope[at_a + j]);
      const double a = two ? x[at_a + j] : 1;
      for (std::size_t i = 0; i < persons; ++i) {
        double by = 0;
        const double above = x[i] - x[at_b + j];
        value += bernoulli_logit(y[i * items + j], a * above, by);
        slope[i] += by * a, slope[at_b + j] -= by * a;
        if (two) slope[at_a + j] += by * above;
      }
    }
    return value;
  };
  return [=] { return posterior(names, scales, natural); };
}

}  // namespace

std::vector<Case> item_response() {
  const Maker one = item_response(Parameters::one), two = item_response(Parameters::two);
  return {{"item_response_1pl_40", "item response", one, "long NUTS run", [=] { return by_nuts(one); }, Kept::yes},
          {"item_response_2pl_50", "item response", two, "long NUTS run", [=] { return by_nuts(two); }, Kept::yes}};
}

}  // namespace hone::calibration
