#include "hone/family/family.hpp"

#include <algorithm>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {

Draws::Draws(int dimension, int component_count, int draws_per_component)
    : z(dimension, component_count * draws_per_component),
      noise(dimension, component_count * draws_per_component),
      weight(static_cast<std::size_t>(component_count) * static_cast<std::size_t>(draws_per_component)),
      components(component_count),
      per_component(draws_per_component) {}

Family::Family(int dimension) : dimension_(dimension) {
  if (dimension < 1) throw InputError("the dimension of a family must be at least 1");
}

void Family::add_slice(std::string name, Role role, std::size_t size) {
  slices_.push_back({.name = std::move(name), .role = role, .offset = parameters_.size(), .size = size});
  parameters_.resize(parameters_.size() + size);
}

void Family::log_weights(std::span<double> out) const {
  if (components() > 1) throw std::logic_error("a family of several components must know their weights");
  std::fill(out.begin(), out.end(), 0.0);
}

void Family::set_log_weights(std::span<const double>) {
  if (components() > 1) throw std::logic_error("a family of several components must take weights");
}

void Family::add_component_score(const Draws&, std::span<const double>, std::span<double>) const {}

double Family::log_normalizer(int) const { throw std::logic_error("this family has no analytic entropy"); }

void Family::add_entropy_gradient(std::span<const double>, std::span<double>) const {
  throw std::logic_error("this family has no analytic entropy");
}

Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component) {
  Draws draws(family.dimension(), family.components(), count);
  family.draw(random, assessment_iteration, draws);
  if (component) component->assign(count, 0);
  if (family.components() == 1) return std::move(draws.z);
  std::vector<double> uniform(count);
  random.uniforms({Purpose::proposal, assessment_iteration}, uniform);
  Matrix<double> result(family.dimension(), count);
  for (int i = 0; i < count; ++i) {
    int k = 0;
    for (double left = uniform[i]; k + 1 < family.components(); ++k) {
      left -= draws.weight[k * count] * count;
      if (left < 0) break;
    }
    copy(draws.z.column(k * count + i), result.column(i));
    if (component) (*component)[i] = k;
  }
  return result;
}

}  // namespace hone
