// The scoreboard: fits every posterior with a known answer and prints how far q by KL, q by VCD and the refined draws
// are from the reference, and what that cost.
//   bench_posteriors [seeds] [threads] [name]
#include "tests/support/posteriors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "hone/base/scalar.hpp"
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

std::string cells(const Score& score) {
  return fmt::format("{:.3f} | {:.2f}–{:.2f}", score.mean, score.narrow, score.wide);
}

void run(const test::KnownPosterior& known, std::uint64_t seed, int threads) {
  const auto posterior = test::make_known(known);
  const Reference reference = test::reference_moments(known);
  CheckedFitConfig config;
  config.fit.seed = seed;
  config.fit.threads = threads;
  PosteriorFitConfig by_kl = config.fit;
  by_kl.objective = nullptr;
  const PosteriorFit kl = fit_posterior(*posterior, by_kl);
  const CheckedFit fit = fit_and_check(*posterior, config);
  double ess = infinity;
  for (const ParameterSummary& s : fit.parameters) ess = std::min(ess, s.effective);
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} | {} | {:.2f} | {} |\n", known.program,
             posterior->dimension(), seed, cells(score_of_q(kl.q, *posterior, reference)), kl.gradients,
             cells(score_of_q(fit.fit.q, *posterior, reference)), fit.fit.gradients,
             cells(score_of_draws(fit, reference)), ess, fit.gradients, fit.seconds, name_of(fit.judgement.verdict));
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
      "Each part: largest error of a mean in reference sds | smallest–largest ratio of sds | gradients by then\n\n");
  fmt::print(
      "| posterior | D | seed | KL: mean | sd | gradients | VCD: mean | sd | gradients | refined: mean | sd | ESS | "
      "gradients | seconds | verdict |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& known : test::known_posteriors()) {
    if (count > 3 && known.program.find(words[3]) == std::string::npos) continue;
    for (int seed = 1; seed <= seeds; ++seed) run(known, static_cast<std::uint64_t>(seed), threads);
  }
}
