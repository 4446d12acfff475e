// The decoder against differences in double precision, and float against double.

#include <gtest/gtest.h>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "tests/latent/support.hpp"
#include "tests/support/differences.hpp"

namespace hone::test {
namespace {

TEST(Decoder, GradientInZAgainstDifferences) {
  for (const DecoderConfig& config : configs()) {
    Model<double> model(config);
    Matrix<double> gradient(latent, batch);
    std::vector<double> value(batch);
    model.target.evaluate(model.z, Want::both, value, gradient);
    for (int c = 0; c < batch; c += 4)
      for (int d = 0; d < latent; ++d) {
        const double slope = derivative_in(
            model.z(d, c), [&] { return model.total(); }, step_of(config));
        EXPECT_NEAR(gradient(d, c), slope, tolerance_of(config) * (100 * scale_of(config) + std::abs(slope)));
      }
  }
}

TEST(Decoder, GradientInTheParametersAgainstDifferences) {
  for (const DecoderConfig& config : configs()) {
    Model<double> model(config);
    const std::vector<double> gradient = model.parameter_gradient();
    for (const Tensor& tensor : model.parameters.tensors())
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); i += 1 + tensor.size() / 5) {
        const double slope = derivative_in(
            model.parameters.values()[i],
            [&] {
              model.decoder.pack();
              return model.total();
            },
            step_of(config));
        const double tolerance = tolerance_of(config) * (1000 * scale_of(config) + std::abs(slope));
        EXPECT_NEAR(gradient[i], slope, tolerance) << tensor.name;
      }
  }
}

TEST(Decoder, MeansAreThoseOfTheFormulas) {
  for (const auto density : {Density::bernoulli, Density::gaussian, Density::poisson}) {
    const Model<double> model({latent, {}, pixels, Activation::relu, density});
    const std::span<const double> weight = model.parameters.of(0);
    Matrix<double> mean(pixels, batch);
    model.decoder.mean(model.z, mean);
    for (int c = 0; c < batch; ++c)
      for (int i = 0; i < pixels; ++i) {
        double a = density == Density::gaussian ? 0 : model.parameters.of(1)[i];
        for (int d = 0; d < latent; ++d) a += weight[d * pixels + i] * model.z(d, c);
        const double expected = density == Density::bernoulli ? 1 / (1 + std::exp(-a))
                                : density == Density::poisson ? std::log(std::exp(1e-4) + std::exp(a))
                                                              : a;
        EXPECT_NEAR(mean(i, c), expected, 1e-12 * (1 + std::abs(expected)));
      }
  }
}

TEST(Decoder, ValuesAreThoseOfTheFormulas) {
  for (const auto density : {Density::bernoulli, Density::gaussian, Density::poisson}) {
    const Model<double> model({latent, {}, pixels, Activation::relu, density});
    std::vector<double> value(batch);
    model.target.evaluate(model.z, Want::value, value, {});
    const std::span<const double> weight = model.parameters.of(0);
    for (int c = 0; c < batch; ++c) {
      double expected = 0;
      for (int d = 0; d < latent; ++d) expected -= 0.5 * (square(model.z(d, c)) + log_two_pi);
      for (int i = 0; i < pixels; ++i) {
        double a = density == Density::gaussian ? 0 : model.parameters.of(1)[i];
        for (int d = 0; d < latent; ++d) a += weight[d * pixels + i] * model.z(d, c);
        const double x = datum(density, i, c);
        if (density == Density::bernoulli) expected += x == 1 ? -softplus(-a) : -softplus(a);
        if (density == Density::gaussian) expected -= 0.5 * square((x - a) / 0.1) + 0.5 * log_two_pi + std::log(0.1);
        if (density == Density::poisson) {
          const double rate = std::log(std::exp(1e-4) + std::exp(a));
          expected += x * std::log(rate) - rate - std::lgamma(x + 1);
        }
      }
      EXPECT_NEAR(value[c], expected, 1e-11 * std::abs(expected));
    }
  }
}

// Gradients within 1e-5 of the largest, values within 1e-6.
TEST(Decoder, FloatAgainstDouble) {
  for (const DecoderConfig& config : configs()) {
    Model<double> exact(config);
    Model<float> model(config);
    std::vector<double> value(batch), exact_value(batch);
    Matrix<double> gradient(latent, batch), exact_gradient(latent, batch);
    // the same parameters and points in both
    std::ranges::copy(model.parameters.values(), exact.parameters.values().begin());
    for (double& x : exact.z.view().flat()) x = static_cast<float>(x);
    model.z = exact.z;
    exact.decoder.pack();
    exact.target.evaluate(exact.z, Want::both, exact_value, exact_gradient);
    model.target.evaluate(model.z, Want::both, value, gradient);
    double largest = 0;
    for (const double x : exact_gradient.view().flat()) largest = std::max(largest, std::abs(x));
    for (int c = 0; c < batch; ++c) {
      EXPECT_NEAR(value[c], exact_value[c], 1e-6 * std::abs(exact_value[c]) + 1e-4);
      for (int d = 0; d < latent; ++d) EXPECT_NEAR(gradient(d, c), exact_gradient(d, c), 1e-5 * largest);
    }
    const std::vector<double> exact_slopes = exact.parameter_gradient();
    const std::vector<float> slopes = model.parameter_gradient();
    largest = 0;
    for (const double x : exact_slopes) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < slopes.size(); ++i) ASSERT_NEAR(slopes[i], exact_slopes[i], 1e-5 * largest);
  }
}

TEST(Decoder, TheBitsOfAParameterGradientDoNotDependOnTheNumberOfParts) {
  for (const DecoderConfig& config : {configs()[1], configs().back()}) {
    const Model<float> model(config);
    const std::vector<float> gradient = model.parameter_gradient();
    EXPECT_EQ(model.parameter_gradient(2), gradient);
    EXPECT_EQ(model.parameter_gradient(5), gradient);
  }
}

TEST(Decoder, TensorsAreNamedAndAGaussianHasNoIntercept) {
  Parameters<float> parameters;
  const Decoder<float> vae({latent, {64, 13}, pixels, Activation::relu, Density::bernoulli}, parameters);
  ASSERT_EQ(parameters.tensors().size(), 6u);
  EXPECT_EQ(parameters.tensors()[0].name, "decoder.weight[0]");
  EXPECT_EQ(parameters.tensors()[0].rows, latent);
  EXPECT_EQ(parameters.tensors()[0].cols, 64);
  EXPECT_EQ(parameters.tensors()[5].name, "decoder.bias[2]");
  Parameters<float> linear;
  const Decoder<float> factorization({latent, {}, pixels, Activation::relu, Density::gaussian}, linear);
  EXPECT_EQ(linear.size(), std::size_t{latent * pixels});
}

TEST(Network, StartsLikeTheAuthors) {
  const PhiloxSource random(1);
  const auto deviation = [](std::span<const float> x) {
    double sum = 0;
    for (const float value : x) sum += square(value);
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  Parameters<float> parameters;
  Decoder<float> vae({10, {200, 100}, 784}, parameters);
  vae.initialize(random, InitialWeights::paper);
  EXPECT_NEAR(deviation(parameters.of(0)), 1 / std::sqrt(200), 0.005);
  EXPECT_NEAR(deviation(parameters.of(1)), 1 / std::sqrt(200), 0.02);
  EXPECT_NEAR(deviation(parameters.of(2)), 1 / std::sqrt(100), 0.005);
  EXPECT_NEAR(deviation(parameters.of(4)), 1, 0.02);
  EXPECT_NE(parameters.of(0)[0], parameters.of(2)[0] * std::sqrt(0.5f));
  Parameters<float> linear;
  Decoder<float> factorization({50, {}, 784}, linear);
  factorization.initialize(random, InitialWeights::paper);
  EXPECT_NEAR(deviation(linear.of(0)), 0.01, 0.0002);
}

TEST(Network, ScaledBiasesStartAtZero) {
  Parameters<float> parameters;
  Decoder<float> vae({10, {200, 100}, 784}, parameters);
  vae.initialize(PhiloxSource(1), InitialWeights::scaled);
  for (const int bias : {1, 3, 5})
    for (const float value : parameters.of(bias)) EXPECT_EQ(value, 0);
}

TEST(Network, ALayerWithoutUnitsIsAnInputError) {
  Parameters<float> parameters;
  EXPECT_THROW(Decoder<float>({3, {64, 0}, 101}, parameters), InputError);
}

}  // namespace
}  // namespace hone::test
