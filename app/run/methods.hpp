#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "app/run/settings.hpp"
#include "hone/base/error.hpp"
#include "hone/latent/amortized_family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/objective/objective.hpp"
#include "hone/tensor/layer_kinds.hpp"

namespace hone {

// Kernels, objectives, families of q(z | x) and activations as a configuration file names them: one table of names for
// each, and what makes the object.

enum class ObjectiveKind { kl, hoffman, vcd, li2017 };

inline constexpr double no_bound = 0;  // as configuration files write it

struct ObjectiveConfig {
  ObjectiveKind kind = ObjectiveKind::vcd;
  double alpha = 1;                                   // vcd: appendix 2's α, in [0, 1]
  Ramp ramp = {};                                     // vcd: of α over iterations
  double score_bound = no_bound;                      // vcd: of |f(z_t) − C|
  Estimator estimator = Estimator::full;              // vcd
  FirstTerm first_term = FirstTerm::reparameterized;  // all but li2017
  Entropy entropy = Entropy::automatic;
  BaselineKind baseline = BaselineKind::global;
  double baseline_decay = 0.9;  // γ
};

std::shared_ptr<const Objective> make_objective(const ObjectiveConfig& config);
const Choices<ObjectiveKind>& objective_names();                                     // all of them
Choices<ObjectiveKind> objective_names(std::initializer_list<ObjectiveKind> kinds);  // in this order
std::string name_of(ObjectiveKind kind);
// Whether the objective of this name runs chains. True for an unknown name, which another version's run may have.
bool refines(const std::string& objective);

enum class KernelKind { hmc, mala, random_walk };

struct KernelConfig {
  KernelKind kind = KernelKind::hmc;
  int leapfrog = 5;         // hmc: leapfrog steps L
  int leapfrog_jitter = 0;  // hmc: each chain's number of steps is uniform on L − jitter … L + jitter
};

std::shared_ptr<const Kernel> make_kernel(const KernelConfig& config);  // KeyError where the jitter is too large
const Choices<KernelKind>& kernel_names();

enum class AmortizedKind { diagonal, low_rank };

struct AmortizedConfig {
  AmortizedKind kind = AmortizedKind::diagonal;
  std::optional<int> rank;  // low_rank: factors
};

std::shared_ptr<const AmortizedFamily> make_family(const AmortizedConfig& config);  // KeyError where the rank is idle
const Choices<AmortizedKind>& amortized_names();
std::string in_words(const AmortizedConfig& config);  // "diagonal", "low-rank, rank 2"

const Choices<Activation>& activation_names();  // of hidden layers

// A model for a reader: "vae", "vae (poisson)"; without the likelihood where it is bernoulli or the name says it.
std::string model_in_words(const std::string& model, const std::string& likelihood);

template <class E>
std::string name_of(const Choices<E>& choices, E value) {
  const auto found = std::ranges::find(choices, value, &std::pair<std::string, E>::second);
  if (found == choices.end()) throw Error("this value has no name in configuration files");
  return found->first;
}

}  // namespace hone
