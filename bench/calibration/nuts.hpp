#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "hone/target/posterior.hpp"

namespace hone::calibration {

// A no-U-turn sampler with a dense metric, for reference runs: it shares no code with hone/mcmc. Multinomial choice of
// the next state (Betancourt 2017), dual averaging of the step size (Hoffman and Gelman 2014).
class Nuts {
 public:
  // Begins at a point drawn uniformly from (−2, 2) per coordinate.
  Nuts(const Posterior& posterior, double acceptance, std::uint64_t seed);
  // Adapts metric and step size.
  void warm_up();
  // Moves to the next draw and returns it (D).
  std::span<const double> next();
  std::int64_t divergences() const { return divergences_; }

 private:
  using Values = std::vector<double>;
  struct State {  // in coordinates e with z = L e
    Values e, momentum, gradient;
    double log_p = 0;
  };
  struct Tree {  // a stretch of the trajectory
    State first, last, chosen;
    Values momenta;  // their sum
    double log_weight = 0;
    bool turned = false;
  };

  void evaluate(State& state);
  void leapfrog(State& state, double direction);
  Tree grow(const State& from, int depth, double direction, double energy);
  void join(Tree& tree, Tree&& more, double direction, bool biased);
  bool turned(const Tree& tree) const;
  void find_step_size();
  void adapt_step_size(int iteration);
  void set_metric(const std::vector<Values>& draws);

  const Posterior& posterior_;
  double acceptance_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  Values l_, z_, gradient_z_;  // L by rows, the draw, the gradient there
  State now_;
  double step_ = 0.1, accepted_ = 0, proposed_ = 0;
  double bar_ = 0, mean_log_step_ = 0, anchor_ = 0;  // dual averaging
  std::int64_t divergences_ = 0;
};

}  // namespace hone::calibration
