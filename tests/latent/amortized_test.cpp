// The encoder and the q of a minibatch against differences, alone and under the objectives.

#include <gtest/gtest.h>

#include <numeric>

#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/latent/encoder.hpp"
#include "hone/latent/minibatch_family.hpp"
#include "hone/latent/model.hpp"
#include "hone/objective/objective.hpp"
#include "tests/latent/support.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int count = 7;

using Form = std::shared_ptr<const AmortizedFamily>;

Form diagonal() { return std::make_shared<DiagonalGaussian>(); }
Form low_rank(int rank) { return std::make_shared<LowRankGaussian>(rank); }

// A model and its q, in double precision.
struct Amortized {
  explicit Amortized(Activation activation, const std::vector<Windows>& down = {}, const Form& form = diagonal())
      : model({latent, {64, 13}, down.empty() ? pixels : image, activation, Density::bernoulli}, Gradients::exact,
              count),
        encoder({model.decoder.pixels(), {64, 13}, form->shape(latent), form->name(), activation, down}, parameters),
        q(form, latent, count) {
    encoder.initialize(PhiloxSource(9), down.empty() ? InitialWeights::paper : InitialWeights::scaled, 30);
    if (!down.empty()) roughen(parameters.values());
    encode();
  }

  void encode() {
    encoder.pack();
    encoder.prepare(tape, model.data.view());
    encoder.forward(tape, 0, 3, q.location(), q.scale());
    encoder.forward(tape, 3, count, q.location(), q.scale());
    q.settle();
  }

  // From the gradient of q's parameters to that of the encoder's.
  std::vector<double> pull_back(std::vector<double> slope, int parts) {
    encoder.backward(tape, 0, 3, q.split(slope));
    encoder.backward(tape, 3, count, q.split(slope));
    std::vector<double> gradient(parameters.size());
    for (int part = 0; part < parts; ++part)
      encoder.sum_gradient(tape, {.part = part, .parts = parts, .begin = 0, .end = tape.location.columns()}, gradient);
    return gradient;
  }

  // The gradient of surrogate() in some of the encoder's parameters against differences.
  template <class F>
  void expect_gradient(std::span<const double> gradient, F&& surrogate, double step, double tolerance) {
    for (const Tensor& tensor : parameters.tensors())
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); i += 1 + tensor.size() / 4) {
        const double slope = derivative_in(
            parameters.values()[i],
            [&] {
              encode();
              return surrogate();
            },
            step);
        EXPECT_NEAR(gradient[i], slope, tolerance * (1 + std::abs(slope))) << tensor.name;
      }
    encode();
  }

  Model<double> model;
  Parameters<double> parameters;
  Encoder<double> encoder;
  MinibatchFamily q;
  EncoderTape<double> tape;
};

// Against many draws of the equal mixture over the data.
void check_moments(const Form& form) {
  const Amortized world(Activation::tanh, {}, form);
  constexpr int rounds = 20'000;
  std::vector<Moments> moments(latent);
  Draws draws(latent, count, 1);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    world.q.draw(PhiloxSource(5), round, draws);
    for (int d = 0; d < latent; ++d)
      for (int c = 0; c < count; ++c) moments[d].add(draws.z(d, c));
  }
  std::vector<double> mean(latent), sd(latent);
  world.q.moments(mean, sd);
  for (int d = 0; d < latent; ++d) {
    EXPECT_NEAR(moments[d].mean(), mean[d], 4 * moments[d].estimate().se);
    EXPECT_NEAR(moments[d].sd(), sd[d], 4 * sd[d] / std::sqrt(2.0 * rounds * count) * 1.5);
  }
}

TEST(MinibatchFamily, MomentsAreThoseOfTheDraws) {
  check_moments(diagonal());
  check_moments(low_rank(2));
}

TEST(Encoder, GradientAgainstDifferences) {
  for (const auto& [activation, convolutions] : {std::pair(Activation::relu, false),
                                                 {Activation::tanh, false},
                                                 {Activation::softplus, false},
                                                 {Activation::relu, true},
                                                 {Activation::tanh, true},
                                                 {Activation::softplus, true}}) {
    Amortized world(activation, convolutions ? down() : std::vector<Windows>());
    std::vector<double> coefficient(world.q.parameters().size());
    PhiloxSource(4).normals({Purpose::draw}, coefficient);
    const std::vector<double> gradient = world.pull_back(coefficient, 3);
    const auto surrogate = [&] {
      return std::inner_product(coefficient.begin(), coefficient.end(), world.q.parameters().begin(), 0.0);
    };
    const bool kinks = activation == Activation::relu;
    world.expect_gradient(gradient, surrogate, kinks ? 1e-6 : 1e-3, kinks ? 1e-6 : 1e-7);
  }
}

TEST(Encoder, StandardDeviationsAreTheModifiedSoftplus) {
  Amortized world(Activation::relu);
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < latent; ++d) {
      const double a = world.tape.scale.value.back()(d, c);
      EXPECT_NEAR(world.q.scale()(d, c), std::log(std::exp(1e-4) + std::exp(a)), 1e-13);
      EXPECT_GE(world.q.scale()(d, c), 1e-4);
    }
}

TEST(Encoder, FloatAgainstDouble) {
  Amortized exact(Activation::relu);
  Parameters<float> parameters;
  Encoder<float> encoder({pixels, {64, 13}, diagonal()->shape(latent), diagonal()->name(), Activation::relu},
                         parameters);
  encoder.initialize(PhiloxSource(9), InitialWeights::paper, 1);
  encoder.pack();
  const Model<float> model({latent, {64, 13}, pixels}, Gradients::exact, count);
  EncoderTape<float> tape;
  encoder.prepare(tape, model.data.view());
  Matrix<double> mean(latent, count), sd(latent, count);
  encoder.forward(tape, 0, count, mean, sd);
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < latent; ++d) {
      EXPECT_NEAR(mean(d, c), exact.q.location()(d, c), 1e-5);
      EXPECT_NEAR(sd(d, c), exact.q.scale()(d, c), 1e-5);
    }
}

// Family functions in q's own parameters.
class AmortizedFamilyTest : public testing::TestWithParam<Form> {
 protected:
  AmortizedFamilyTest()
      : q(GetParam(), latent, count), draws(latent, 1, count), coefficient(count), slope(q.parameters().size()) {
    PhiloxSource(8).normals({Purpose::start}, q.parameters());
    for (int c = 0; c < count; ++c)
      for (int i = 0; i < GetParam()->shape(latent).positive; ++i) q.scale()(i, c) = 0.5 + std::abs(q.scale()(i, c));
    q.settle();
    PhiloxSource(8).normals({Purpose::start, 1}, coefficient);
    q.draw(PhiloxSource(8), 1, draws);
  }

  template <class F>
  void expect_slope(F&& f) {
    for (std::size_t i = 0; i < slope.size(); ++i)
      EXPECT_NEAR(slope[i], derivative_in(q.parameters()[i], f), 1e-8 * (1 + std::abs(slope[i])));
  }

  double weighted_log_density(MatrixView<const double> z) const {
    std::vector<double> value(count);
    q.log_density(z, Want::value, value, {});
    return std::inner_product(value.begin(), value.end(), coefficient.begin(), 0.0);
  }

  MinibatchFamily q;
  Draws draws;
  std::vector<double> coefficient, slope;
};

TEST_P(AmortizedFamilyTest, Score) {
  Matrix<double> z(latent, count);
  PhiloxSource(2).normals({Purpose::draw}, z.view().flat());
  q.add_score(z, coefficient, slope);
  expect_slope([&] { return weighted_log_density(z); });
}

TEST_P(AmortizedFamilyTest, DrawScoreIsTheScoreAtTheDraws) {
  std::vector<double> other(slope.size());
  q.add_draw_score(draws, coefficient, slope);
  q.add_score(draws.z, coefficient, other);
  for (std::size_t i = 0; i < slope.size(); ++i) EXPECT_NEAR(slope[i], other[i], 1e-10 * (1 + std::abs(slope[i])));
}

TEST_P(AmortizedFamilyTest, Pathwise) {
  Matrix<double> dz(latent, count);
  PhiloxSource(2).normals({Purpose::draw}, dz.view().flat());
  q.add_pathwise(draws, dz, coefficient, slope);
  Draws moved = draws;
  expect_slope([&] {
    q.draw(PhiloxSource(8), 1, moved);  // the same noise
    double sum = 0;
    for (int c = 0; c < count; ++c)
      for (int d = 0; d < latent; ++d) sum += coefficient[c] * dz(d, c) * moved.z(d, c);
    return sum;
  });
}

TEST_P(AmortizedFamilyTest, Entropy) {
  q.add_entropy_gradient(coefficient, slope);
  expect_slope([&] {
    q.settle();
    double sum = 0;
    for (int c = 0; c < count; ++c) sum += coefficient[c] * q.log_normalizer(c);
    return sum;
  });
}

TEST_P(AmortizedFamilyTest, GradientInZ) {
  Matrix<double> gradient(latent, count);
  q.log_density(draws.z, Want::gradient, {}, gradient);
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < latent; ++d)
      EXPECT_NEAR(coefficient[c] * gradient(d, c),
                  derivative_in(draws.z(d, c), [&] { return weighted_log_density(draws.z); }), 1e-7);
}

TEST_P(AmortizedFamilyTest, EveryDrawWeighsOne) {
  for (const double weight : draws.weight) EXPECT_EQ(weight, 1);
}

INSTANTIATE_TEST_SUITE_P(Every, AmortizedFamilyTest,
                         testing::Values(diagonal(), low_rank(1), low_rank(2), low_rank(latent)), [](const auto& at) {
                           return at.index == 0 ? "Diagonal" : "LowRank" + std::to_string(at.index);
                         });

// The gradient that each objective gives to the encoder is that of its surrogate: z0 moves with θ under KL and in the
// VCD's first term, z_t and its weight are held fixed in the second.
void check_objective(const std::string& name, Entropy entropy, const Form& form) {
  Amortized world(Activation::tanh, {}, form);
  MinibatchFamily& q = world.q;
  const LatentTarget<double>& target = world.model.target;
  const PhiloxSource random(6);
  Evidence evidence(latent, 1, count);
  q.draw(random, 1, evidence.draws);
  target.evaluate(evidence.draws.z, Want::both, evidence.log_p0, evidence.grad_p0);
  q.log_density(evidence.draws.z, Want::both, evidence.log_q0, evidence.grad_q0);
  Chains& refined = evidence.refined;
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < latent; ++d) refined.z(d, c) = evidence.draws.z(d, c) + 0.1 * (d - 1) + 0.02 * c;
  target.evaluate(refined.z, Want::both, refined.value, refined.gradient);
  q.log_density(refined.z, Want::value, evidence.log_qt, {});

  const bool analytic = entropy != Entropy::sampled;
  std::vector<double> weight(count);  // f(z_t), or g(z_t) of appendix 3; the baseline is 0 at first
  for (int c = 0; c < count; ++c) weight[c] = evidence.ft(c) - (analytic ? q.log_normalizer(c) : 0);
  const Matrix<double> z0 = evidence.draws.z;

  const auto objective = objective_named(name, {.entropy = entropy})->clone();
  std::vector<double> slope(q.parameters().size());
  objective->add_ascent(q, evidence, slope);

  // sampled: the score of q at z0 has mean 0 and is left out of the gradient, so log q is constant there
  MinibatchFamily still = q;
  Draws moved = evidence.draws;
  const auto surrogate = [&] {
    std::vector<double> log_p(count), log_q(count), score0(count), score_t(count);
    q.draw(random, 1, moved);
    target.evaluate(moved.z, Want::value, log_p, {});
    still.log_density(moved.z, Want::value, log_q, {});
    q.log_density(z0, Want::value, score0, {});
    q.log_density(refined.z, Want::value, score_t, {});
    double sum = 0;
    for (int c = 0; c < count; ++c) {
      if (name != "li2017") sum += log_p[c] + (analytic ? q.log_normalizer(c) : -log_q[c]);
      if (name == "vcd") sum += score_t[c] - weight[c] * score0[c];
      if (name == "li2017") sum += score_t[c];
    }
    return sum;
  };
  const std::vector<double> gradient = world.pull_back(slope, 2);
  world.expect_gradient(gradient, surrogate, 1e-4, 2e-6);
}

TEST(AmortizedObjective, IsTheGradientOfItsSurrogate) {
  for (const Form& form : {diagonal(), low_rank(2)}) {
    for (const char* name : {"kl", "vcd"})
      for (const Entropy entropy : {Entropy::analytic, Entropy::sampled}) check_objective(name, entropy, form);
    check_objective("li2017", Entropy::analytic, form);
  }
}

// Whatever the widths, the activation and the scale of the data: outputs start at a tenth, and so q near N(0, 0.7²).
TEST(Encoder, ScaledWeightsStartEveryModelAlike) {
  constexpr int data = 500, width = 300;
  for (const double scale : {1e-3, 1.0, 1e3})
    for (const std::vector<int>& hidden : {std::vector<int>{}, std::vector<int>{8}, std::vector<int>{300, 40, 120}})
      for (const Activation activation : {Activation::relu, Activation::tanh}) {
        std::vector<double> values(static_cast<std::size_t>(data) * width);
        PhiloxSource(3).normals({Purpose::synthesize}, values);
        for (double& x : values) x *= scale;
        const DataSet train(values, {width, 1});
        hone::Model<double> model({.kind = ModelKind::gaussian_mf,
                                   .latent = 40,
                                   .hidden = {},
                                   .encoder_hidden = hidden,
                                   .activation = activation},
                                  train);
        model.initialize(PhiloxSource(4));
        Minibatch<double> batch = model.minibatch(data);
        std::vector<int> all(data);
        std::iota(all.begin(), all.end(), 0);
        model.expand(train, all, 0, data, batch);
        EncoderTape<double> tape;
        Matrix<double> mean(40, data), sd(40, data);
        model.encoder().prepare(tape, batch.view());
        model.encoder().forward(tape, 0, data, mean, sd);
        double square_of_means = 0, lowest = 1, highest = 0;
        for (const double m : mean.view().flat()) square_of_means += square(m) / (40.0 * data);
        for (const double s : sd.view().flat()) lowest = std::min(lowest, s), highest = std::max(highest, s);
        const std::string what = std::to_string(scale) + ", " + std::to_string(hidden.size()) + " hidden layers";
        EXPECT_GT(std::sqrt(square_of_means), 0.02) << what;
        EXPECT_LT(std::sqrt(square_of_means), 0.2) << what;
        EXPECT_GT(lowest, 0.3) << what;
        EXPECT_LT(highest, 1.3) << what;
      }
}

}  // namespace
}  // namespace hone::test
