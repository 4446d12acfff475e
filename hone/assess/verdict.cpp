#include "hone/assess/verdict.hpp"

#include <algorithm>
#include <cmath>

#include "hone/assess/importance.hpp"
#include "hone/base/format.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

std::string coordinate(const std::vector<std::string>& names, std::ptrdiff_t index) {
  if (index < 0) return "log p";
  const auto i = static_cast<std::size_t>(index);
  return i < names.size() ? names[i] : detail::format("coordinate {}", index + 1);
}

bool diverges(const ChainChecks& c) {
  return static_cast<double>(c.divergences) > most_divergent * static_cast<double>(c.proposals);
}

// A number with two digits after the point, or as many more as show on which side of a limit it is.
std::string beside(double value, double limit) {
  double unit = 0.01;
  for (int digits = 2;; ++digits, unit /= 10) {
    const double shown = std::round(value / unit) * unit;
    if (digits == 6 || !std::isfinite(value) || (value > limit ? shown - limit : limit - shown) > 1e-9)
      return detail::format("{:." + std::to_string(digits) + "f}", value);
  }
}

// The chains still depend on where they started.
void faults_of_arrival(const Findings& f, std::vector<std::string>& faults) {
  const ChainChecks& c = f.chains;
  if (!(c.nested_rhat < most_rhat))
    faults.push_back(
        detail::format("chains from different starts do not agree after {} steps: nested R-hat {:.3f} in {}, "
                       "should be below {}",
                       f.steps, c.nested_rhat, coordinate(f.chain_names, c.rhat_coordinate), most_rhat));
  if (c.nested_rhat < most_rhat && !(c.spread <= c.spread_limit))
    faults.push_back(
        detail::format("after {} steps super-chains still differ by where they started: their means vary {:.1f} times "
                       "as much as chance makes them, should be below {:.1f}",
                       f.steps, c.spread, c.spread_limit));
  if (!(c.drift <= c.drift_limit))
    faults.push_back(detail::format(
        "means, sds or tails of the draws still move between the first {} steps and the next {}: {:.1f} "
        "standard errors in {}, should be below {:.1f}",
        f.steps / 2, f.steps - f.steps / 2, c.drift, coordinate(f.chain_names, c.drift_coordinate), c.drift_limit));
  if (!(c.memory <= c.memory_limit))
    faults.push_back(
        detail::format("the chains still depend on where they started: correlation {:.2f} of z0 and z_t in {} (they "
                       "stand still, mirror, or mix slowly)",
                       c.memory, coordinate(f.chain_names, c.memory_coordinate)));
  if (misses_tail(c))
    faults.push_back(detail::format(
        "{} has a heavy tail (tail index {:.2f}), which chains reach late: {} steps of burn-in, should be "
        "at least {}",
        coordinate(f.chain_names, c.tail_coordinate), c.tail_index, c.burn_in, long_burn_in));
}

// The draws are too few, or the kernel did not work.
void faults_of_sampling(const Findings& f, std::vector<std::string>& faults) {
  const ChainChecks& c = f.chains;
  if (c.per_chain < least_per_chain)
    faults.push_back(
        detail::format("the chains are too short to forget their starts: {:.2g} effective draws each, should be at "
                       "least {}",
                       c.per_chain, least_per_chain));
  if (std::min(c.effective, c.tail_effective) < c.effective_needed)
    faults.push_back(
        detail::format("the draws amount to only {:.0f} independent ones for a mean and {:.0f} for a tail; at least {} "
                       "are needed",
                       c.effective, c.tail_effective, c.effective_needed));
  if (!(c.sd_error <= most_sd_error))
    faults.push_back(detail::format(
        "the sd of {} is known to {:.0f} % only (one standard error), should be {:.0f} % or less",
        f.sd_error_name.empty() ? "a parameter" : f.sd_error_name, 100 * c.sd_error, 100 * most_sd_error));
  if (!(c.acceptance >= least_chain_acceptance))
    faults.push_back(detail::format("proposals are accepted with probability {:.2f}, should be above {}", c.acceptance,
                                    least_chain_acceptance));
  if (diverges(c))
    faults.push_back(
        detail::format("{} of {} trajectories diverged: there are places too narrow for the step size. Try "
                       "--target-accept 0.95, a non-centred form of hierarchical parameters, or tighter priors",
                       c.divergences, c.proposals));
  if (c.stuck > most_stuck) faults.push_back(detail::format("{:.3g} % of the chains never moved", 100 * c.stuck));
}

// The draws may not have the modes' masses.
void faults_of_modes(const Findings& f, std::vector<std::string>& faults) {
  if (f.q.mode_mass.size() > 1 && !f.chains.crosses_modes) {
    const double apart = ModeMasses{f.q.mode_mass, f.q.q_weight, f.q.k_hat}.apart();
    if (!(f.q.k_hat < usable_k_hat))
      faults.push_back(
          detail::format("the masses of the {} modes are not known: k-hat {:.2f} of the importance weights",
                         f.q.mode_mass.size(), f.q.k_hat));
    else if (apart > most_mass_apart)
      faults.push_back(
          detail::format("the masses of the modes by importance weights differ from q's by {:.2f}", apart));
  }
  if (f.modes > 1 && !f.component_per_mode)
    faults.push_back(detail::format(
        "the starts reached {} separate modes, but q does not cover each: try the family mixture", f.modes));
}

// Reasons not to trust the refined draws.
std::vector<std::string> faults_of_chains(const Findings& f) {
  std::vector<std::string> faults;
  faults_of_arrival(f, faults);
  faults_of_sampling(f, faults);
  faults_of_modes(f, faults);
  return faults;
}

// Reasons not to use q, given that the refined draws are good. First on the natural scale, as in the table; then on
// unconstrained coordinates, if these differ from it or no reason was found there.
std::vector<std::string> faults_of_q(const Findings& f, const Tolerances& tolerance, bool of_q) {
  std::vector<std::string> faults;
  const std::string whose = of_q ? "q's" : "the draws'", allowed = of_q ? "tolerance" : "tolerance with chance";
  const auto off = [](double ratio) { return std::abs(std::log(ratio)); };
  const NaturalChecks& n = f.natural;
  const bool mean_off = n.shift - n.shift_se > tolerance.mean;
  const bool sd_off = off(n.sd_ratio) - n.sd_ratio_se > std::log1p(tolerance.sd);
  const auto mean_of = [&](const std::string& name, double shift) {
    faults.push_back(detail::format("{} mean of {} is off by {} sd ({} {:.3g})", whose, name,
                                    beside(shift, tolerance.mean), allowed, tolerance.mean));
  };
  const auto sd_of = [&](const std::string& what, double ratio) {
    const double limit = ratio > 1 ? 1 + tolerance.sd : 1 / (1 + tolerance.sd);
    faults.push_back(detail::format("{} is {} times what it should be ({} {:.3g} %)", what, beside(ratio, limit),
                                    allowed, 100 * tolerance.sd));
  };
  const auto sd_named = [&](const std::string& name) { return detail::format("{} sd of {}", whose, name); };
  if (mean_off) mean_of(n.shift_name, n.shift);
  const auto shift = std::ranges::max_element(f.q.shift, {}, [](double x) { return std::abs(x); });
  if (shift != f.q.shift.end() && !(std::abs(*shift) <= tolerance.mean)) {
    const std::string name = coordinate(f.coordinate_names, shift - f.q.shift.begin());
    if (!mean_off || name != n.shift_name) mean_of(name, std::abs(*shift));
  }
  if (sd_off) sd_of(sd_named(n.sd_name), n.sd_ratio);
  const auto ratio = std::ranges::max_element(f.q.sd_ratio, {}, off);
  if (ratio != f.q.sd_ratio.end() && !(off(*ratio) <= std::log1p(tolerance.sd))) {
    const std::string name = coordinate(f.coordinate_names, ratio - f.q.sd_ratio.begin());
    if (!sd_off || name != n.sd_name) sd_of(sd_named(name), *ratio);
  }
  const auto along = [&](double worst) { sd_of(detail::format("along its worst direction {} sd", whose), worst); };
  if (!f.q.narrowest.empty() && f.q.narrowest.front().sd_ratio < 1 / (1 + tolerance.sd))
    along(f.q.narrowest.front().sd_ratio);
  if (!f.q.widest.empty() && f.q.widest.front().sd_ratio > 1 + tolerance.sd) along(f.q.widest.front().sd_ratio);
  if (!(f.vcd.mean - 2 * f.vcd.se <= tolerance.vcd * f.dimension))
    faults.push_back(detail::format("the VCD is {:.3g} ± {:.2g}, {:.3g} per dimension (tolerance {:.3g})", f.vcd.mean,
                                    f.vcd.se, f.vcd.mean / f.dimension, tolerance.vcd));
  return faults;
}

// What the importance weights of q's draws are good for. Where q is off and a tail is heavy, q's draws may not reach
// the tail at all, and then k-hat does not see it.
std::string note_on_weights(const Findings& f, Verdict verdict) {
  if (f.q.k_hat == -infinity) return "the importance weights of q's draws are nearly constant: is_mean is q's own mean";
  const bool heavy = f.natural.tail_index > slow_sd || f.chains.tail_index > heavy_tail;
  if (!(f.q.k_hat < usable_k_hat))
    return detail::format("k-hat {:.2f}: importance weights of q's draws are of no use", f.q.k_hat);
  if (heavy && verdict != Verdict::use_q)
    return detail::format(
        "k-hat {:.2f}, but q's draws may not reach the heavy tail: do not rely on importance weights (is_mean)",
        f.q.k_hat);
  constexpr double narrow = 0.7;  // of a refined sd
  if (verdict != Verdict::use_q && !f.q.sd_ratio.empty() && std::ranges::min(f.q.sd_ratio) < narrow)
    return detail::format(
        "k-hat {:.2f}, but q is so narrow that its draws may miss what the chains found: do not rely on importance "
        "weights (is_mean)",
        f.q.k_hat);
  return detail::format("k-hat {:.2f}: importance-weighted expectations are reported too (is_mean)", f.q.k_hat);
}

std::vector<std::string> notes_on(const Findings& f, Verdict verdict) {
  std::vector<std::string> notes;
  notes.push_back(detail::format("all of this holds in the region that {} starts reached", f.starts));
  if (f.left_out > 0)
    notes.push_back(
        detail::format("{} of them gave approximations far worse than q: chains started at draws of q, half as "
                       "wide again, instead",
                       f.left_out));
  notes.push_back(note_on_weights(f, verdict));
  if (f.q.tail_growth > 3 || f.q.k_hat > 0.7)
    notes.push_back(f.q.tail_growth > 3 ? "the VCD still grows with t: the posterior may have a heavier tail than q"
                                        : "the weights' tail is heavy: the posterior may have a heavier tail than q");
  if (f.q.p_value < 0.01)
    notes.push_back(detail::format(
        "q differs from the posterior beyond chance (p = {:.3g}); the sizes above say how much", f.q.p_value));
  if (!f.fit_converged) notes.push_back("q was still changing when its last round ended; the verdict is on q as it is");
  if (f.natural.tail_index > slow_sd)
    notes.push_back(detail::format(
        "{} has a heavy tail (tail index {:.2f}): {}, so use quantiles", f.natural.tail_name, f.natural.tail_index,
        f.natural.tail_index > 0.7 ? "it may have no mean" : "its sd may not exist or converges slowly"));
  if (!(f.chains.bfmi >= least_bfmi))
    notes.push_back(detail::format("the energy varies a lot (BFMI {:.2f}): chains mix slowly in log p", f.chains.bfmi));
  if (f.chains.chains < f.chains.chains_begun)
    notes.push_back(
        detail::format("the budget let {} of {} chains go on to the end", f.chains.chains, f.chains.chains_begun));
  if (f.chains.error > f.chains.error_wanted)
    notes.push_back(detail::format("a mean is known to {:.2g} sd (mcse) only; {:.2g} was wanted", f.chains.error,
                                   f.chains.error_wanted));
  return notes;
}

std::vector<std::string> notes_on_draws(const Findings& f) {
  std::vector<std::string> notes;
  notes.emplace_back("all of this holds in the region that the draws reach: a mode that none is near goes unnoticed");
  if (f.q.p_value < 0.01)
    notes.push_back(detail::format("the draws differ from the posterior beyond chance (p = {:.3g})", f.q.p_value));
  if (f.q.k_hat == -infinity)
    notes.emplace_back("the importance weights of the draws are nearly constant");
  else if (!std::isnan(f.q.k_hat))
    notes.push_back(detail::format("k-hat {:.2f}: importance weights of the draws are {}", f.q.k_hat,
                                   f.q.k_hat < 0.7 ? "of use" : "of no use"));
  return notes;
}

// The checks that are skipped in many dimensions.
void add_limits(const Findings& f, std::vector<std::string>& notes) {
  if (f.dimension > most_direction_dimensions)
    notes.push_back(
        detail::format("only single parameters and coordinates were compared, no directions across them: "
                       "{} dimensions are more than {}",
                       f.dimension, most_direction_dimensions));
  if (f.dimension > most_tail_dimensions)
    notes.push_back(detail::format("whether chains reach a heavy tail was not examined: {} dimensions are more than {}",
                                   f.dimension, most_tail_dimensions));
}

// What to try where the chains did not arrive. Step sizes shrink where trajectories diverge, so a funnel shows in what
// is left of it: energies that vary a lot, or steps that are nearly always accepted, far above what they aimed at. In
// few steps neither is a sign of anything.
void add_advice(const Findings& f, bool of_q, std::vector<std::string>& notes) {
  constexpr double nearly_always = 0.97;
  constexpr int few_steps = 64;
  const ChainChecks& c = f.chains;
  const bool slow = c.bfmi > 0 && c.bfmi < least_bfmi;
  const bool tiny = c.acceptance > std::max(nearly_always, (3 + f.acceptance_aim) / 4);
  if (f.steps < few_steps || diverges(c) || !(slow || tiny)) return;
  notes.push_back(detail::format(
      "{}{}{}: there may be places too narrow for the rest, as in a funnel. Try a non-centred form of hierarchical "
      "parameters, or tighter priors{}",
      slow ? detail::format("BFMI {:.2f}", c.bfmi) : "", slow && tiny ? ", " : "",
      tiny ? detail::format("steps so small that {:.1f} % are accepted", 100 * c.acceptance) : "",
      of_q && !tiny ? ", or --target-accept 0.95" : ""));
}

// The reason given where no fault was found.
std::string agreement(const Findings& f, bool of_q) {
  const std::string text = of_q ? "q agrees with the refined draws within the tolerances, in means, sds and VCD"
                                : "the draws agree with the refined ones within the tolerances and chance, in means "
                                  "and sds";
  return f.q.narrowest.empty() ? text : text + ", along every direction";
}

}  // namespace

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::use_q:
      return "use-q";
    case Verdict::use_refined:
      return "use-refined";
    default:
      return "trust-neither";
  }
}

Judgement judge(const Findings& f, const Tolerances& tolerances, Subject subject) {
  const bool of_q = subject == Subject::q;
  Judgement result{Verdict::trust_neither, faults_of_chains(f), {}};
  const bool arrived = result.reasons.empty();
  if (arrived) {
    result.reasons = faults_of_q(f, tolerances, of_q);
    result.verdict = result.reasons.empty() ? Verdict::use_q : Verdict::use_refined;
    if (result.verdict == Verdict::use_q) result.reasons.push_back(agreement(f, of_q));
  }
  result.notes = of_q ? notes_on(f, result.verdict) : notes_on_draws(f);
  if (!arrived) add_advice(f, of_q, result.notes);
  if (f.capped)
    result.notes.emplace_back(
        "the refinement stopped at its limit of steps or gradients; a larger budget lets it go on");
  add_limits(f, result.notes);
  return result;
}

}  // namespace hone
