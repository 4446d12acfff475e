#include "hone/optim/optimizer.hpp"

#include "hone/base/error.hpp"

namespace hone {

double decay_factor(double decay, std::uint32_t every, std::uint32_t iteration) {
  return every == 0 ? 1 : std::pow(decay, (iteration - 1) / every);  // whole intervals behind us
}

Optimizer::Optimizer(const OptimizerConfig& config, const Family& family)
    : config_(config), first_(family.parameters().size()), second_(family.parameters().size()) {
  for (const Role role : {Role::location, Role::scale, Role::weight})
    if (!(rate(role) >= 0)) throw InputError("learning rates must not be negative");
  if (!(config.decay > 0 && config.decay <= 1)) throw InputError("the decay of the rates must lie in (0, 1]");
}

double Optimizer::rate(Role role) const {
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

void Optimizer::step(Family& family, std::span<const double> ascent, std::uint32_t iteration) {
  const double decayed = decay_factor(config_.decay, config_.decay_every, iteration);
  const AdamCorrection correction(iteration);
  const std::span<double> theta = family.parameters();
  for (const Slice& slice : family.slices()) {
    const bool still = slice.role == Role::weight && iteration <= config_.weights_from;
    const double eta = still ? 0 : decayed * rate(slice.role);
    for (std::size_t i = slice.offset; i < slice.offset + slice.size; ++i)
      theta[i] += config_.kind == OptimizerKind::rmsprop
                      ? rmsprop_step(eta, ascent[i], iteration == 1, second_[i])
                      : adam_step(eta, ascent[i], correction, first_[i], second_[i]);
  }
  family.project();
}

}  // namespace hone
