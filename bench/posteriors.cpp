// The scoreboard: fits every posterior with a known answer and prints how far q by KL, q by VCD and the refined draws
// are from the reference, and what that cost.
//   bench_posteriors [seeds] [threads] [name]
#include "tests/support/posteriors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "hone/fit/checked_fit.hpp"
#include "hone/fit/q_geometry.hpp"

namespace {

using namespace hone;
using Reference = std::map<std::string, test::ReferenceMoments>;

// Worst error over all parameters that the reference knows.
struct Score {
  double mean = 0;              // in reference sds
  double narrow = 1, wide = 1;  // smallest and largest ratio of sds
};

void worsen(Score& score, const test::ReferenceMoments& r, double mean, double sd) {
  score.mean = std::max(score.mean, std::abs(mean - r.mean) / r.sd);
  score.narrow = std::min(score.narrow, sd / r.sd);
  score.wide = std::max(score.wide, sd / r.sd);
}

Score score_of_q(const FittedQ& q, const Posterior& posterior, const Reference& reference) {
  constexpr int draws = 10000;  // of q: no gradients
  const Matrix<double> e = independent_draws(*q.family, draws, PhiloxSource(12345));
  std::vector<double> z(posterior.dimension()), x(posterior.names().size());
  std::vector<Moments> moments(x.size());
  for (int i = 0; i < draws; ++i) {
    q.whitening.to_z(e.column(i), z);
    posterior.constrain(z, x);
    for (std::size_t k = 0; k < x.size(); ++k) moments[k].add(x[k]);
  }
  Score score;
  for (std::size_t k = 0; k < x.size(); ++k)
    if (const auto r = reference.find(posterior.names()[k]); r != reference.end())
      worsen(score, r->second, moments[k].mean(), moments[k].sd());
  return score;
}

Score score_of_draws(const CheckedFit& fit, const Reference& reference) {
  Score score;
  for (const ParameterSummary& s : fit.parameters)
    if (const auto r = reference.find(s.name); r != reference.end()) worsen(score, r->second, s.mean, s.sd);
  return score;
}

struct Side {
  Score score;
  std::int64_t gradients = 0;
  std::optional<std::int64_t> reached;  // gradients when every mean was within 0.1 sd, for the first time

  void see(const Score& s, std::int64_t spent) {
    score = s;
    gradients = spent;
    if (s.mean <= 0.1 && !reached) reached = spent;
  }
  std::string cells() const {
    return fmt::format("{:.3f} | {:.2f}–{:.2f} | {} | {}", score.mean, score.narrow, score.wide, gradients,
                       reached ? std::to_string(*reached) : "–");
  }
};

void run(const test::KnownPosterior& known, std::uint64_t seed, int threads) {
  const auto posterior = test::make_known(known);
  const Reference reference = test::reference_moments(known);
  CheckedFitConfig config;
  config.fit.seed = seed;
  config.fit.threads = threads;
  Side kl, vcd, refined;
  PosteriorFitConfig alone = config.fit;
  alone.budget.gradients /= 16;
  fit_posterior(*posterior, alone, [&](const PosteriorFit& fit, const Stage* stage) {
    if (!stage) return;
    (stage->objective == "kl" ? kl : vcd).see(score_of_q(fit.q, *posterior, reference), fit.gradients);
  });
  // The cheap way to refined draws: 1000 of them from q by KL. Its cost counts for "to 0.1 sd" if it gets that close.
  CheckedFitConfig cheap = config;
  cheap.fit.objective = nullptr;
  cheap.draws = 1000;
  const CheckedFit few = fit_and_check(*posterior, cheap);
  refined.see(score_of_draws(few, reference), few.gradients);
  const CheckedFit fit = fit_and_check(*posterior, config);
  refined.see(score_of_draws(fit, reference), fit.gradients);
  fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", known.program, posterior->dimension(), seed, kl.cells(),
             vcd.cells(), refined.cells(), name_of(fit.judgement.verdict));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const int seeds = count > 1 ? std::atoi(words[1]) : 1, threads = count > 2 ? std::atoi(words[2]) : 1;
  if (seeds < 1 || threads < 1) {
    fmt::print(stderr, "usage: bench_posteriors [seeds] [threads] [part of a name]\n");
    return 2;
  }
  fmt::print(
      "Each part: largest error of a mean in reference sds | smallest–largest ratio of sds | gradients | gradients "
      "when "
      "every mean was within 0.1 sd (of refined draws: 1000 from q by KL where they suffice, else the 4000 of the "
      "whole "
      "run)\n\n");
  fmt::print(
      "| posterior | D | seed | KL: mean | sd | gradients | to 0.1 sd | VCD: mean | sd | gradients | to 0.1 sd | "
      "refined: mean | sd | gradients | to 0.1 sd | verdict |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& known : test::known_posteriors()) {
    if (count > 3 && known.program.find(words[3]) == std::string::npos) continue;
    for (int seed = 1; seed <= seeds; ++seed) run(known, static_cast<std::uint64_t>(seed), threads);
  }
}
