#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

struct Component {
  double weight;
  Values mean;
  double sd;
};

// Gaussians, round each.
struct GaussianMixture {
  std::vector<Component> parts;
  double operator()(At z, Slope gradient) const {
    Values log_p(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      log_p[k] = std::log(parts[k].weight) - static_cast<double>(z.size()) * std::log(parts[k].sd);
      for (std::size_t i = 0; i < z.size(); ++i) log_p[k] -= 0.5 * square((z[i] - parts[k].mean[i]) / parts[k].sd);
    }
    const double total = log_sum_exp(log_p);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t k = 0; k < parts.size(); ++k)
      for (std::size_t i = 0; i < z.size(); ++i)
        gradient[i] -= std::exp(log_p[k] - total) * (z[i] - parts[k].mean[i]) / square(parts[k].sd);
    return total;
  }
};

Case mixture(const std::string& name, const std::vector<Component>& parts) {
  const auto names = numbered("x", parts.front().mean.size());
  const auto truth = [=] {
    return closed_form(names, [&](std::size_t i, Known& known) {
      double second = 0;
      known.centre = 0;
      for (const Component& c : parts) {
        known.centre += c.weight * c.mean[i];
        second += c.weight * (square(c.mean[i]) + square(c.sd));
      }
      known.spread = std::sqrt(second - square(known.centre));
    });
  };
  return {.name = name,
          .kind = "mixture",
          .make = [=] { return make_posterior(GaussianMixture{parts}, names); },
          .how = "closed form",
          .truth = truth};
}

Values along_first(std::size_t dimension, double first) {
  Values mean(dimension);
  mean[0] = first;
  return mean;
}

}  // namespace

std::vector<Case> mixtures() {
  std::vector<Component> corners, ring;
  for (int k = 0; k < 8; ++k)
    corners.push_back({0.125, {k & 1 ? 4.0 : -4.0, k & 2 ? 4.0 : -4.0, k & 4 ? 4.0 : -4.0}, 1});
  for (int k = 0; k < 5; ++k)
    ring.push_back({0.1 + 0.05 * k, {5 * std::cos(1.2566 * k), 5 * std::sin(1.2566 * k)}, 0.6 + 0.1 * k});
  return {mixture("mixture_2_overlapping", {{0.5, {-1.5}, 1}, {0.5, {1.5}, 1}}),
          mixture("mixture_2_in_2", {{0.3, {-4, 0}, 1}, {0.7, {4, 2}, 1}}),
          mixture("mixture_2_in_10", {{0.4, along_first(10, -3), 1}, {0.6, along_first(10, 3), 1}}),
          mixture("mixture_2_wide_and_narrow", {{0.5, {0, 0, 0}, 2}, {0.5, {5, 5, 5}, 0.3}}),
          mixture("mixture_spike_in_slab", {{0.5, {0, 0}, 3}, {0.5, {1, 1}, 0.2}}),
          mixture("mixture_3_in_5", {{0.2, {-4, 0, 0, 0, 0}, 1}, {0.3, {4, 0, 2, 0, 0}, 1}, {0.5, {0, 5, 0, 0, 1}, 1}}),
          mixture("mixture_4_in_2", {{0.25, {-3, -3}, 1}, {0.25, {3, -3}, 1}, {0.25, {-3, 3}, 1}, {0.25, {3, 3}, 1}}),
          mixture("mixture_5_on_a_ring", ring),
          mixture("mixture_8_corners", corners)};
}

}  // namespace hone::calibration
