#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/tensor/triangular.hpp"
#include "tests/support/differences.hpp"

namespace hone {
namespace {

struct Case {
  const char* name;
  std::unique_ptr<Family> (*make)();
};

// A family whose parameters all differ.
template <class F>
std::unique_ptr<Family> stirred(F family) {
  const PhiloxSource random(21);
  for (const Slice& slice : family.slices()) {
    const auto part = family.parameters().subspan(slice.offset, slice.size);
    std::vector<double> noise(part.size());
    random.normals({Purpose::start, 0, static_cast<std::uint32_t>(slice.offset)}, noise);
    for (std::size_t i = 0; i < part.size(); ++i)
      part[i] = slice.role == Role::scale ? part[i] * 0.7 + 0.15 * noise[i] : noise[i];
  }
  return std::make_unique<F>(std::move(family));
}

const Case cases[] = {
    {"gaussian", [] { return stirred(GaussianFamily(3, Covariance::diagonal)); }},
    {"gaussian_full", [] { return stirred(GaussianFamily(3, Covariance::full)); }},
    {"mixture", [] { return stirred(MixtureFamily(3, 2, Covariance::diagonal)); }},
    {"mixture_full", [] { return stirred(MixtureFamily(2, 3, Covariance::full)); }},
};

class Families : public testing::TestWithParam<Case> {
 protected:
  Families()
      : q(GetParam().make()),
        draws(q->dimension(), q->components(), 4),
        coefficient(draws.count()),
        gradient(q->parameters().size()) {
    q->draw(random, 1, draws);
    random.normals({Purpose::start, 9}, coefficient);
  }

  std::vector<double> log_q(MatrixView<const double> z) const {
    std::vector<double> value(z.cols());
    q->log_density(z, Want::value, value, {});
    return value;
  }

  // Compares gradient with the differences of `surrogate` in every parameter.
  template <class F>
  void expect_gradient_of(F surrogate) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double expected = test::derivative_in(q->parameters()[i], surrogate);
      EXPECT_NEAR(gradient[i], expected, 2e-8 * (1 + std::abs(expected))) << "parameter " << i;
    }
  }

  PhiloxSource random{33};
  std::unique_ptr<Family> q;
  Draws draws;
  std::vector<double> coefficient;
  std::vector<double> gradient;
};

TEST_P(Families, GradientInZAgreesWithDifferences) {
  Matrix<double> slope(q->dimension(), draws.count());
  q->log_density(draws.z, Want::gradient, {}, slope);
  for (int c = 0; c < draws.count(); ++c)
    for (int i = 0; i < q->dimension(); ++i) {
      const double expected = test::derivative_in(draws.z(i, c), [&] { return log_q(draws.z)[c]; });
      EXPECT_NEAR(slope(i, c), expected, 1e-8 * (1 + std::abs(expected)));
    }
}

TEST_P(Families, ScoreAgreesWithDifferences) {
  q->add_score(draws.z, coefficient, gradient);
  expect_gradient_of([&] {
    const auto value = log_q(draws.z);
    double sum = 0;
    for (int c = 0; c < draws.count(); ++c) sum += coefficient[c] * value[c];
    return sum;
  });
}

TEST_P(Families, PathwiseAgreesWithDifferences) {
  Matrix<double> dz(q->dimension(), draws.count());
  random.normals({Purpose::start, 10}, dz.view().flat());
  q->add_pathwise(draws, dz, coefficient, gradient);
  expect_gradient_of([&] {  // the same noise under other parameters
    Draws moved(q->dimension(), q->components(), draws.per_component);
    q->draw(random, 1, moved);
    double sum = 0;
    for (int c = 0; c < draws.count(); ++c)
      for (int i = 0; i < q->dimension(); ++i) sum += coefficient[c] * dz(i, c) * moved.z(i, c);
    return sum;
  });
}

// The score of (component, z): a log weight and a Gaussian, written out here a second time.
TEST_P(Families, DrawScoreAgreesWithDifferences) {
  const auto joint = [&](int c) {
    const int k = draws.component_of(c);
    const Normal normal = q->component(k).value();
    std::vector<double> log_weight(q->components());
    q->log_weights(log_weight);
    std::vector<double> u(q->dimension());
    normal.whiten(draws.z.column(c), u);
    double sum = log_weight[k] - normal.log_normalizer();
    for (const double x : u) sum -= 0.5 * x * x;
    return sum;
  };
  q->add_draw_score(draws, coefficient, gradient);
  expect_gradient_of([&] {
    double sum = 0;
    for (int c = 0; c < draws.count(); ++c) sum += coefficient[c] * joint(c);
    return sum;
  });
}

// q over z is q over e times the Jacobian of the change of coordinates.
TEST_P(Families, StandardizingLeavesTheDensityWhatItWas) {
  std::vector<double> before(draws.count()), after(draws.count());
  q->log_density(draws.z, Want::value, before, {});
  const std::vector<double> theta(q->parameters().begin(), q->parameters().end());
  const std::optional<LocationScale> own = q->standardize();
  if (!own) {
    EXPECT_TRUE(std::ranges::equal(theta, q->parameters()));
    return;
  }
  const Normal change{own->covariance, own->mean, own->scale};
  Matrix<double> e(q->dimension(), draws.count());
  for (int c = 0; c < draws.count(); ++c) change.whiten(draws.z.column(c), e.column(c));
  q->log_density(e, Want::value, after, {});
  const double log_det = change.log_normalizer() - 0.5 * q->dimension() * log_two_pi;
  for (int c = 0; c < draws.count(); ++c) EXPECT_NEAR(after[c] - log_det, before[c], 1e-10);
  EXPECT_TRUE(q->components() > 1 || q->component(0)->mean[0] == 0);
}

TEST_P(Families, WeightsComeBack) {
  std::vector<double> weight(q->components()), found(q->components());
  for (int k = 0; k < q->components(); ++k) weight[k] = 0.3 * k;
  q->set_log_weights(weight);
  q->log_weights(found);
  double sum = 0;
  for (const double w : found) sum += std::exp(w);
  EXPECT_NEAR(sum, 1, 1e-12);
  for (int k = 0; k < q->components(); ++k) EXPECT_NEAR(found[k] - found[0], weight[k], 1e-12);
}

TEST_P(Families, EntropyGradientAgreesWithDifferences) {
  if (!q->has_analytic_entropy()) {
    EXPECT_THROW(q->log_normalizer(0), std::logic_error);
    return;
  }
  q->add_entropy_gradient(coefficient, gradient);
  expect_gradient_of([&] {
    double sum = 0;
    for (int c = 0; c < draws.count(); ++c) sum += coefficient[c] * q->log_normalizer(c);
    return sum;
  });
}

// E_q[score] = 0, for the score at the draws and for the stratified one; tolerance 4 standard errors.
TEST_P(Families, ScoresHaveMeanZero) {
  for (const bool stratified : {false, true}) {
    std::vector<Moments> moments(gradient.size());
    Draws one(q->dimension(), q->components(), 1);
    for (std::uint32_t trial = 1; trial <= 20000; ++trial) {
      q->draw(random, trial, one);
      std::ranges::fill(gradient, 0.0);
      if (stratified)
        q->add_draw_score(one, one.weight, gradient);
      else
        q->add_score(one.z, one.weight, gradient);
      for (std::size_t i = 0; i < gradient.size(); ++i) moments[i].add(gradient[i]);
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const Estimate mean = moments[i].estimate();
      EXPECT_NEAR(mean.mean, 0, 4 * mean.se + 1e-12) << (stratified ? "stratified " : "plain ") << i;
    }
  }
}

TEST_P(Families, MomentsAreThoseOfTheDraws) {
  Draws many(q->dimension(), q->components(), 50000);
  q->draw(random, 3, many);
  std::vector<double> mean(q->dimension()), sd(q->dimension());
  q->moments(mean, sd);
  for (int i = 0; i < q->dimension(); ++i) {
    double first = 0, second = 0;
    for (int c = 0; c < many.count(); ++c) first += many.weight[c] * many.z(i, c);
    for (int c = 0; c < many.count(); ++c) second += many.weight[c] * std::pow(many.z(i, c) - first, 2);
    EXPECT_NEAR(first, mean[i], 4 * sd[i] / std::sqrt(50000.0));
    EXPECT_NEAR(std::sqrt(second), sd[i], 4 * sd[i] / std::sqrt(2 * 50000.0) * 1.5);
  }
}

TEST_P(Families, ScalesAreFloored) {
  for (const Slice& slice : q->slices())
    if (slice.role == Role::scale)
      for (double& x : q->parameters().subspan(slice.offset, slice.size)) x = -1;
  q->project();
  const auto value = log_q(draws.z);
  for (const double x : value) EXPECT_FALSE(std::isnan(x));
  for (const Slice& slice : q->slices())
    if (slice.role == Role::scale) {
      EXPECT_EQ(q->parameters()[slice.offset], scale_floor);
    }
}

TEST_P(Families, DrawsAreKnownWhitened) {
  std::vector<double> value(draws.count()), other(draws.count());
  Matrix<double> slope(q->dimension(), draws.count()), other_slope = slope;
  q->log_density(draws.z, Want::both, value, slope);
  q->log_density_at(draws, Want::both, other, other_slope);
  for (int c = 0; c < draws.count(); ++c) {
    EXPECT_NEAR(value[c], other[c], 1e-12);
    for (int i = 0; i < q->dimension(); ++i) EXPECT_NEAR(slope(i, c), other_slope(i, c), 1e-11);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(cases), [](const auto& test) { return test.param.name; });

// With a diagonal Cholesky factor, a full q gives the numbers of a diagonal q; one off-diagonal element changes that.
TEST(GaussianFamily, DiagonalFactorsTakeTheShortWay) {
  constexpr int d = 19, points = 40;
  GaussianFamily full(d, Covariance::full), plain(d, Covariance::diagonal);
  for (int i = 0; i < d; ++i) {
    full.mean()[i] = plain.mean()[i] = 0.1 * i;
    full.scale()[packed(i, i)] = plain.scale()[i] = 1 + 0.05 * i;
  }
  const PhiloxSource random(8);
  Draws a(d, 1, points), b(d, 1, points), few(d, 1, 3);
  const auto log_q = [](const Family& q, const Draws& draws) {
    std::vector<double> value(draws.count());
    q.log_density(draws.z, Want::value, value, {});
    return value;
  };
  full.draw(random, 1, a);
  plain.draw(random, 1, b);
  EXPECT_TRUE(std::ranges::equal(a.z.view().flat(), b.z.view().flat()));
  EXPECT_EQ(log_q(full, a), log_q(plain, b));
  full.scale()[packed(18, 3)] = 0.4;
  full.draw(random, 1, a);
  full.draw(random, 1, few);
  EXPECT_NE(a.z(18, 0), b.z(18, 0));
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(a.z(18, c), few.z(18, c));
    EXPECT_EQ(log_q(full, a)[c], log_q(full, few)[c]);
  }
}

// ∫ q(z) dz = 1 in one dimension
TEST(MixtureFamily, IsNormalised) {
  MixtureFamily q(1, 3, Covariance::diagonal);
  for (int k = 0; k < 3; ++k) {
    q.mean(k)[0] = k - 1;
    q.scale(k)[0] = 0.3 + 0.2 * k;
    q.logits()[k] = 0.4 * k;
  }
  double mass = 0;
  for (double z = -12; z < 12; z += 0.01) {
    double value = 0;
    q.log_density({&z, 1, 1}, Want::value, {&value, 1}, {});
    mass += 0.01 * std::exp(value);
  }
  EXPECT_NEAR(mass, 1, 1e-9);
}

// Each draw is from the component that it names, and components have q's weights as their shares.
TEST(MixtureFamily, IndependentDrawsHaveItsWeights) {
  constexpr int count = 20000;
  const std::vector<double> weight = {0.2, 0.5, 0.3};
  MixtureFamily q(1, 3, Covariance::diagonal);
  for (int k = 0; k < 3; ++k) {
    q.mean(k)[0] = 10 * k;
    q.scale(k)[0] = 0.5;
    q.logits()[static_cast<std::size_t>(k)] = std::log(weight[static_cast<std::size_t>(k)]);
  }
  std::vector<int> component;
  const Matrix<double> z = independent_draws(q, count, PhiloxSource(5), &component);
  ASSERT_EQ(z.cols(), count);
  ASSERT_EQ(component.size(), static_cast<std::size_t>(count));
  std::vector<Moments> of(3);
  for (int i = 0; i < count; ++i) {
    const int k = component[static_cast<std::size_t>(i)];
    EXPECT_EQ(k, static_cast<int>(std::lround(z(0, i) / 10))) << z(0, i);
    of[static_cast<std::size_t>(k)].add(z(0, i) - 10 * k);
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const double share = static_cast<double>(of[k].count()) / count;
    EXPECT_NEAR(share, weight[k], 4 * std::sqrt(weight[k] * (1 - weight[k]) / count));
    EXPECT_NEAR(of[k].mean(), 0, 4 * of[k].estimate().se);
    EXPECT_NEAR(of[k].sd(), 0.5, 4 * 0.5 / std::sqrt(2.0 * static_cast<double>(of[k].count())));
  }
}

TEST(FamilySizes, RefuseImpossibleSizes) {
  EXPECT_THROW(GaussianFamily(0, Covariance::diagonal), InputError);
  EXPECT_THROW(MixtureFamily(2, 0, Covariance::full), InputError);
}

}  // namespace
}  // namespace hone
