// The evaluation of a model: what best, pilot and mixture mean, that the estimates of p(x) are unbiased, and that the
// numbers depend neither on threads nor on what else is evaluated.

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/scalar.hpp"
#include "tests/engine/tiny_model.hpp"

namespace hone::test {
namespace {

using Draws3 = std::array<ProposalDraws, proposal_count>;
constexpr std::array<bool, proposal_count> all = {true, true, true};

// Draws of proposal j with given log weights; every density is 0 unless the test sets it later.
ProposalDraws weighted(const std::vector<double>& log_weight) {
  ProposalDraws draws;
  draws.log_joint = log_weight;
  for (auto& density : draws.log_density) density.assign(log_weight.size(), 0.0);
  return draws;
}

std::vector<double> constant(double weight, std::size_t count = 20) {
  return std::vector<double>(count, std::log(weight));
}

TEST(Combine, EqualWeightsGiveThatWeight) {
  const PointEvaluation point = combine({weighted(constant(1)), weighted(constant(2)), weighted(constant(4))}, all);
  for (int j = 0; j < proposal_count; ++j) {
    EXPECT_NEAR(point.proposal[j].log_likelihood, std::log(1 << j), 1e-14);
    EXPECT_NEAR(point.proposal[j].effective_samples, 20, 1e-10);
  }
  EXPECT_NEAR(point.best, std::log(4), 1e-14);
  EXPECT_NEAR(point.pilot, std::log(4), 1e-14);
  EXPECT_NEAR(point.mixture.log_likelihood, std::log(7.0 / 3), 1e-14);
  EXPECT_NEAR(point.mixture.effective_samples, 60 * square(7) / (3 * 21.0), 1e-10);
}

TEST(Combine, ThePilotChoosesOnTheFirstTenthAndEstimatesOnTheRest) {
  std::vector<double> lucky = constant(1), steady = constant(3);
  lucky[0] = lucky[1] = std::log(100);  // the first tenth of 20 draws
  const PointEvaluation point = combine({weighted(lucky), weighted(steady), weighted(constant(2))}, all);
  EXPECT_NEAR(point.pilot, 0, 1e-14);                           // the lucky proposal's other draws
  EXPECT_NEAR(point.best, std::log((200 + 18) / 20.0), 1e-14);  // all draws; chosen after seeing them
}

TEST(Combine, TheMixtureWeighsEveryDrawAgainstAllProposals) {
  Draws3 draws = {weighted(constant(1, 10)), weighted(constant(1, 10)), weighted(constant(1, 10))};
  for (int j = 0; j < proposal_count; ++j)
    for (int i = 0; i < proposal_count; ++i) draws[j].log_density[i].assign(10, std::log(1.0 + i + 3 * j));
  const PointEvaluation point = combine(draws, all);
  double sum = 0;  // 1 / mean density, one kind of draw per proposal
  for (int j = 0; j < proposal_count; ++j) sum += 3 / (6.0 + 9 * j);
  EXPECT_NEAR(point.mixture.log_likelihood, std::log(sum / 3), 1e-14);
}

TEST(Combine, ProposalsThatAreNotUsedDoNotCount) {
  const PointEvaluation point = combine({weighted(constant(1)), {}, weighted(constant(3))}, {true, false, true});
  EXPECT_NEAR(point.best, std::log(3), 1e-14);
  EXPECT_NEAR(point.mixture.log_likelihood, std::log(2), 1e-14);
}

TEST(Combine, WeightsMayVanishAndBeHuge) {
  std::vector<double> some(20, -infinity);
  some[5] = 2000;
  const PointEvaluation point = combine(
      {weighted(some), weighted(std::vector<double>(20, -infinity)), weighted(std::vector<double>(20, -3000.0))}, all);
  EXPECT_NEAR(point.proposal[0].log_likelihood, 2000 - std::log(20), 1e-10);
  EXPECT_NEAR(point.proposal[0].effective_samples, 1, 1e-12);
  EXPECT_EQ(point.proposal[1].log_likelihood, -infinity);
  EXPECT_EQ(point.proposal[1].effective_samples, 0);
  EXPECT_NEAR(point.proposal[2].log_likelihood, -3000, 1e-9);
}

TEST(Summarize, APointWithoutWeightMakesTheMeanInfinite) {
  PointEvaluation good = combine({weighted(constant(1)), weighted(constant(2)), weighted(constant(4))}, all);
  const ProposalDraws none = weighted(std::vector<double>(20, -infinity));
  const PointEvaluation bad = combine({none, none, none}, all),
                        half = combine({none, weighted(constant(2)), none}, all);
  const EvaluationSummary fine = summarize(std::vector{good, good, good});
  EXPECT_EQ(fine.points_without_weight, 0);
  EXPECT_NEAR(fine.best.mean, std::log(4), 1e-14);
  EXPECT_EQ(fine.best.se, 0);
  const EvaluationSummary some = summarize(std::vector{good, half, good});
  EXPECT_EQ(some.points_without_weight, 0);
  EXPECT_EQ(some.proposal[0].mean, -infinity);
  EXPECT_NEAR(some.proposal[1].mean, std::log(2), 1e-14);
  EXPECT_TRUE(std::isfinite(some.mixture.mean));
  const EvaluationSummary lost = summarize(std::vector{good, bad, good, bad});
  EXPECT_EQ(lost.points_without_weight, 2);
  for (const Estimate& figure : {lost.best, lost.pilot, lost.mixture, lost.proposal[1]}) {
    EXPECT_EQ(figure.mean, -infinity);
    EXPECT_TRUE(std::isnan(figure.se));
  }
  EXPECT_TRUE(std::isnan(summarize(std::vector{good}).best.se));
}

// Averages probabilities, not their logarithms, over many evaluations of the same datum with different random numbers.
TEST(Evaluation, MixtureAndPilotAreUnbiasedAndTheBestIsNot) {
  const std::vector<double> x = {1, 0, 1, 1};
  const DataSet data = binary_data(repeated(x, 4000), 4);
  TinyModel model(ModelKind::vae);
  const auto engine = model.engine(data);
  EvaluationConfig config;
  config.samples = 12;
  config.burn_in = config.kept = 10;
  Moments mixture, pilot, best, first;
  for (const PointEvaluation& point : engine->evaluate(data, config, {})) {
    mixture.add(std::exp(point.mixture.log_likelihood));
    pilot.add(std::exp(point.pilot));
    best.add(std::exp(point.best));
    first.add(std::exp(point.proposal[0].log_likelihood));
  }
  const double exact = model.evidence(x);
  const auto deviation = [&](const Moments& m) { return (m.mean() - exact) / m.estimate().se; };
  EXPECT_LT(std::abs(deviation(mixture)), 4);
  EXPECT_LT(std::abs(deviation(pilot)), 4);
  EXPECT_LT(std::abs(deviation(first)), 4);
  EXPECT_GT(deviation(best), 10);
  EXPECT_LT(mixture.estimate().se / exact, 0.01);
}

TEST(Evaluation, PoissonEvidenceAgainstQuadrature) {
  const std::vector<std::vector<double>> rows = {{0, 1, 3, 0, 2}, {5, 0, 0, 1, 1}, {2, 2, 0, 4, 0}};
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  const DataSet data(values, ImageShape{1, 5});
  TinyModel model(ModelKind::poisson_mf);
  const auto engine = model.engine(data);
  const auto points = engine->evaluate(data, {}, {});
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const double exact = std::log(model.evidence(rows[n]));
    const ImportanceEstimate& mixture = points[n].mixture;
    EXPECT_NEAR(mixture.log_likelihood, exact, 4 / std::sqrt(mixture.effective_samples));
    EXPECT_GT(mixture.effective_samples, 10'000);
  }
}

TEST(Evaluation, NumbersDoNotDependOnThreadsOrOnLaterData) {
  std::vector<double> values(4 * 170);
  PhiloxSource(1).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.5;
  const DataSet data = binary_data(values, 4);
  TinyModel model(ModelKind::vae);
  EvaluationConfig config;
  config.samples = 600;
  config.burn_in = config.kept = 5;
  const auto reference = model.engine(data)->evaluate(data, config, {});
  const auto equal = [](const PointEvaluation& a, const PointEvaluation& b) {
    return a.best == b.best && a.pilot == b.pilot && a.mixture.log_likelihood == b.mixture.log_likelihood;
  };
  for (const int threads : {2, 3})
    EXPECT_TRUE(std::ranges::equal(model.engine(data, threads)->evaluate(data, config, {}), reference, equal));
  for (const int points : {1, 73, 100, 169, 170, 1000}) {
    config.points = points;
    const auto fewer = model.engine(data, 2)->evaluate(data, config, {});
    EXPECT_EQ(fewer.size(), static_cast<std::size_t>(std::min(points, 170)));
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), reference.begin(), equal)) << points;
  }
  config.points.reset();
  for (const auto& [first, end] : {std::pair(0, 50), std::pair(50, 150), std::pair(150, 170)}) {
    config.first = first;
    const auto part = model.engine(data, 2)->evaluate(data.slice(first, end), config, {});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), reference.begin() + first, equal)) << first;
  }
}

}  // namespace
}  // namespace hone::test
