#include "hone/optim/optimizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/optim/update.hpp"

namespace hone {
namespace {

// Whether x is ∞ or NaN, by its exponent: integer operations may be reordered, so loops over them vectorize.
template <class Real>
HONE_INLINE auto nonfinite_bits(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr int shift = sizeof(Real) == 4 ? 23 : 52;
  constexpr Bits exponent = sizeof(Real) == 4 ? 0xFF : 0x7FF;
  return static_cast<Bits>(((std::bit_cast<Bits>(x) >> shift) & exponent) == exponent);
}

// θ_i += step(i) over a range; returns whether all are finite afterwards
template <class Real, class Step>
HONE_INLINE bool move(const Elements& range, Real* theta, Step step) {
  decltype(nonfinite_bits(Real())) bad = 0;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    theta[i] += step(i);
    bad |= nonfinite_bits(theta[i]);
  }
  return bad == 0;
}

template <class Real>
HONE_INLINE bool rmsprop(const Elements& range, Real rate, bool first, const UpdateArrays<Real>& arrays) {
  const Real* const gradient = arrays.gradient.data();
  Real* const g = arrays.second.data();
  Real* const theta = arrays.theta.data();
  if (first) return move(range, theta, [=](std::size_t i) { return rmsprop_step(rate, gradient[i], true, g[i]); });
  return move(range, theta, [=](std::size_t i) { return rmsprop_step(rate, gradient[i], false, g[i]); });
}

template <class Real>
HONE_INLINE bool adam(const Elements& range, Real rate, const AdamCorrection& correction,
                      const UpdateArrays<Real>& arrays) {
  const Real* const gradient = arrays.gradient.data();
  Real* const first = arrays.first.data();
  Real* const second = arrays.second.data();
  return move(range, arrays.theta.data(),
              [=](std::size_t i) { return adam_step(rate, gradient[i], correction, first[i], second[i]); });
}

}  // namespace

HONE_CLONES bool rmsprop_update(const Elements& range, float rate, bool first, const UpdateArrays<float>& arrays) {
  return rmsprop(range, rate, first, arrays);
}
HONE_CLONES bool rmsprop_update(const Elements& range, double rate, bool first, const UpdateArrays<double>& arrays) {
  return rmsprop(range, rate, first, arrays);
}
HONE_CLONES bool adam_update(const Elements& range, float rate, const AdamCorrection& correction,
                             const UpdateArrays<float>& arrays) {
  return adam(range, rate, correction, arrays);
}
HONE_CLONES bool adam_update(const Elements& range, double rate, const AdamCorrection& correction,
                             const UpdateArrays<double>& arrays) {
  return adam(range, rate, correction, arrays);
}

namespace {

// RMSProp or Adam with one learning rate per role.
class RoleOptimizer final : public Optimizer {
 public:
  RoleOptimizer(const OptimizerConfig& config, const Family& family);
  void step(Family& family, std::span<const double> ascent, std::uint32_t iteration) override;

 private:
  double rate(Role role) const;
  void update(const Elements& range, double eta, std::span<const double> ascent, std::uint32_t iteration,
              std::span<double> theta);

  OptimizerConfig config_;
  std::vector<std::size_t> logarithmic_;  // parameters that move by their logarithm, ascending
  std::vector<double> first_, second_;    // Adam's moments; RMSProp's G is second_
};

RoleOptimizer::RoleOptimizer(const OptimizerConfig& config, const Family& family)
    : config_(config), first_(family.parameters().size()), second_(family.parameters().size()) {
  if (config.positive == PositiveSteps::logarithmic) logarithmic_ = family.positive_parameters();
  std::ranges::sort(logarithmic_);
  for (const Role role : {Role::location, Role::scale, Role::weight})
    if (!(rate(role) >= 0)) throw InputError("learning rates must not be negative");
  if (!(config.decay > 0 && config.decay <= 1)) throw InputError("the decay of the rates must lie in (0, 1]");
}

double RoleOptimizer::rate(Role role) const {
  switch (role) {
    case Role::location:
      return config_.rate_location;
    case Role::scale:
      return config_.rate_scale;
    case Role::weight:
      return config_.rate_weight;
  }
  throw Error("unknown role");
}

void RoleOptimizer::update(const Elements& range, double eta, std::span<const double> ascent, std::uint32_t iteration,
                           std::span<double> theta) {
  const UpdateArrays<double> arrays{.gradient = ascent, .first = first_, .second = second_, .theta = theta};
  if (config_.kind == OptimizerKind::rmsprop)
    rmsprop_update(range, eta, iteration == 1, arrays);
  else
    adam_update(range, eta, AdamCorrection(iteration), arrays);
}

void RoleOptimizer::step(Family& family, std::span<const double> ascent, std::uint32_t iteration) {
  const double decayed = decay_factor(config_.decay, config_.decay_every, iteration);
  const AdamCorrection correction(iteration);
  const std::span<double> theta = family.parameters();
  for (const Slice& slice : family.slices()) {
    const bool still = slice.role == Role::weight && iteration <= config_.weights_from;
    const double eta = still ? 0 : decayed * rate(slice.role);
    const std::size_t end = slice.offset + slice.size;
    std::size_t i = slice.offset;
    for (auto positive = std::ranges::lower_bound(logarithmic_, i); i < end; ++i) {
      const std::size_t until = positive == logarithmic_.end() ? end : std::min(end, *positive);
      if (i < until) update({i, until}, eta, ascent, iteration, theta);
      i = until;
      if (i == end) break;
      ++positive;
      const double gradient = ascent[i] * theta[i];  // d/d log θ = θ d/dθ
      const double move = config_.kind == OptimizerKind::rmsprop
                              ? rmsprop_step(eta, gradient, iteration == 1, second_[i])
                              : adam_step(eta, gradient, correction, first_[i], second_[i]);
      theta[i] *= std::exp(move);
    }
  }
  family.project();
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Family& family) {
  return std::make_unique<RoleOptimizer>(config, family);
}

}  // namespace hone
