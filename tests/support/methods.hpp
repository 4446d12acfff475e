#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/mala.hpp"
#include "hone/mcmc/random_walk.hpp"
#include "hone/objective/kl.hpp"
#include "hone/objective/li2017.hpp"
#include "hone/objective/vcd.hpp"

namespace hone::test {

// Objectives and kernels as configurations hold them.
using SomeObjective = std::shared_ptr<const Objective>;
using SomeKernel = std::shared_ptr<const Kernel>;

inline SomeObjective by_kl(const KlConfig& config = {}) { return std::make_shared<Kl>(config); }
inline SomeObjective by_hoffman(const KlConfig& config = {}) { return std::make_shared<Hoffman>(config); }
inline SomeObjective by_vcd(const VcdConfig& config = {}) { return std::make_shared<Vcd>(config); }
inline SomeObjective by_li2017(Entropy entropy = Entropy::automatic) { return std::make_shared<Li2017>(entropy); }

// The settings that the objective has; it ignores the others.
inline SomeObjective objective_named(const std::string& name, const KlConfig& c = {}) {
  if (name == "kl") return by_kl(c);
  if (name == "hoffman") return by_hoffman(c);
  if (name == "li2017") return by_li2017(c.entropy);
  if (name != "vcd") throw std::invalid_argument(name);
  return by_vcd(
      {.first_term = c.first_term, .entropy = c.entropy, .baseline = c.baseline, .baseline_decay = c.baseline_decay});
}

inline SomeKernel hmc(const HmcConfig& config = {}) { return std::make_shared<Hmc>(config); }
inline SomeKernel mala() { return std::make_shared<Mala>(); }
inline SomeKernel random_walk() { return std::make_shared<RandomWalk>(); }

}  // namespace hone::test
