#include "hone/tensor/layer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/peak.hpp"

namespace hone {
namespace {

struct Shape {
  int inputs, outputs, columns;
};
const std::vector<Shape> shapes = {{3, 13, 37}, {13, 64, 37}, {64, 101, 37},  {64, 101, 1}, {1, 1, 1},
                                   {3, 101, 5}, {50, 48, 6},  {200, 200, 11}, {784, 10, 7}};

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> all;
  for (const SimdLevel level : {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512})
    if (supported(level)) all.push_back(level);
  return all;
}

double activate(Activation activation, double a) {
  switch (activation) {
    case Activation::relu:
      return std::max(0.0, a);
    case Activation::tanh:
      return std::tanh(a);
    case Activation::softplus:
      return softplus(a);
    case Activation::linear:
      break;
  }
  return a;
}

// From the value of the activation.
double slope(Activation activation, double h) {
  switch (activation) {
    case Activation::relu:
      return h > 0;
    case Activation::tanh:
      return 1 - h * h;
    case Activation::softplus:
      return 1 - std::exp(-h);
    case Activation::linear:
      break;
  }
  return 1;
}

double residual(Density density, double a, double x) {
  switch (density) {
    case Density::bernoulli:
      return x - sigmoid(a);
    case Density::gaussian:
      return (x - a) / 0.01;
    default:  // Poisson
      break;
  }
  return (x / modified_softplus(a) - 1) * sigmoid(a - softplus_shift);
}

double log_p(Density density, double a, double x) {
  switch (density) {
    case Density::bernoulli:
      return x * a - softplus(a);
    case Density::gaussian:
      return -0.5 * square(x - a) / 0.01 - 0.5 * (log_two_pi + std::log(0.01));
    default:  // Poisson
      break;
  }
  return x * std::log(modified_softplus(a)) - modified_softplus(a);
}

// Random operands of a layer.
template <class Real>
struct Operands {
  explicit Operands(const Shape& shape)
      : x(shape.inputs, shape.columns),
        dy(shape.outputs, shape.columns),
        data(shape.outputs, shape.columns),
        weights(static_cast<std::size_t>(shape.inputs * shape.outputs)),
        bias(static_cast<std::size_t>(shape.outputs)),
        datum(static_cast<std::size_t>(shape.columns)) {
    fill(weights, 1 / std::sqrt(shape.inputs));
    fill(bias, 1);
    for (int c = 0; c < shape.columns; ++c) {
      fill({x.view().column(c), static_cast<std::size_t>(shape.inputs)}, 1);
      fill({dy.view().column(c), static_cast<std::size_t>(shape.outputs)}, 1);
      for (int i = 0; i < shape.outputs; ++i) data(i, c) = static_cast<Real>((i * 7 + c * 3) % 5 < 2);
      datum[c] = static_cast<std::uint32_t>((c * 5 + 2) % shape.columns);  // not in the order of the columns
    }
  }

  void fill(std::span<Real> to, double scale) {
    std::vector<double> normal(to.size());
    PhiloxSource(5).normals({Purpose::draw, 0, next++}, normal);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<Real>(scale * normal[i]);
  }

  // a = Wᵀ x + b, and the sum of the sizes of its terms
  std::pair<double, double> output(int unit, int column) const {
    double sum = bias[unit], size = std::abs(sum);
    for (int i = 0; i < x.rows(); ++i) {
      const double term = double{weights[i * dy.rows() + unit]} * x(i, column);
      sum += term;
      size += std::abs(term);
    }
    return {sum, size};
  }

  std::uint32_t next = 0;
  Batch<Real> x, dy, data;
  std::vector<Real> weights, bias;
  std::vector<std::uint32_t> datum;
};

// Error of a result whose terms have sizes that sum to `size`.
template <class Real>
double tolerance(double size) {
  return (sizeof(Real) == 4 ? 2e-6 : 1e-14) * (1 + size);
}

template <class Real>
void check_forward(const Shape& shape, SimdLevel level) {
  const Operands<Real> operands(shape);
  PackedLayer<Real> layer(shape.inputs, shape.outputs, Directions::forward, level);
  layer.pack(operands.weights, operands.bias);
  Batch<Real> y(shape.outputs, shape.columns);
  for (const auto activation : {Activation::linear, Activation::relu, Activation::tanh, Activation::softplus}) {
    layer.forward(operands.x, activation, y);
    for (int c = 0; c < shape.columns; ++c)
      for (int i = 0; i < shape.outputs; ++i) {
        const auto [a, size] = operands.output(i, c);
        ASSERT_NEAR(y(i, c), activate(activation, a), tolerance<Real>(size)) << name_of(level) << ' ' << i << ' ' << c;
      }
  }
}

template <class Real>
void check_residual(const Shape& shape, SimdLevel level) {
  const Operands<Real> operands(shape);
  PackedLayer<Real> layer(shape.inputs, shape.outputs, Directions::forward, level);
  layer.pack(operands.weights, operands.bias);
  Batch<Real> y(shape.outputs, shape.columns);
  for (const auto density : {Density::bernoulli, Density::gaussian, Density::poisson}) {
    std::vector<double> value(shape.columns, 1.0);
    layer.forward_residual(operands.x, density, {operands.data.view(), operands.datum}, y, value);
    const double scale = density == Density::bernoulli ? 1 : 100;  // how steep the residual is in a
    for (int c = 0; c < shape.columns; ++c) {
      double sum = 1, allowed = tolerance<Real>(1);
      for (int i = 0; i < shape.outputs; ++i) {
        const auto [a, size] = operands.output(i, c);
        const double x = operands.data(i, static_cast<int>(operands.datum[c]));
        const double expected = residual(density, a, x);
        ASSERT_NEAR(y(i, c), expected, scale * (1 + std::abs(expected)) * tolerance<Real>(size)) << name_of(level);
        sum += log_p(density, a, x);
        allowed += tolerance<Real>(size) * (1 + std::abs(expected)) + tolerance<Real>(std::abs(log_p(density, a, x)));
      }
      ASSERT_NEAR(value[c], sum, allowed) << name_of(level);
    }
  }
}

template <class Real>
void check_backward(const Shape& shape, SimdLevel level) {
  const Operands<Real> operands(shape);
  PackedLayer<Real> layer(shape.inputs, shape.outputs, Directions::both, level);
  layer.pack(operands.weights, operands.bias);
  Batch<Real> h(shape.inputs, shape.columns), dx(shape.inputs, shape.columns), plain(shape.inputs, shape.columns);
  layer.backward_input(operands.dy, plain);
  for (const auto activation : {Activation::relu, Activation::tanh, Activation::softplus}) {
    for (int c = 0; c < shape.columns; ++c)
      for (int i = 0; i < shape.inputs; ++i) h(i, c) = static_cast<Real>(activate(activation, operands.x(i, c)));
    layer.backward(operands.dy, activation, h, dx);
    for (int c = 0; c < shape.columns; ++c)
      for (int i = 0; i < shape.inputs; ++i) {
        double sum = 0, size = 0;
        for (int j = 0; j < shape.outputs; ++j) {
          const double term = double{operands.weights[i * shape.outputs + j]} * operands.dy(j, c);
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(plain(i, c), sum, tolerance<Real>(size)) << name_of(level);
        ASSERT_NEAR(dx(i, c), sum * slope(activation, h(i, c)), tolerance<Real>(size)) << name_of(level);
      }
  }
}

template <class Real>
void check_weight_gradient(const Shape& shape, SimdLevel level) {
  const Operands<Real> operands(shape);
  // Old contents are overwritten.
  std::vector<Real> gradient(operands.weights.size(), Real(0.5)), bias(operands.bias.size(), Real(0.25));
  const int middle = shape.inputs / 3;
  weight_gradient<Real>(operands.x, operands.dy, 0, middle, gradient, level);
  weight_gradient<Real>(operands.x, operands.dy, middle, shape.inputs, gradient, level);
  bias_gradient<Real>(operands.dy, 0, shape.outputs, bias);
  for (int j = 0; j < shape.outputs; ++j) {
    double total = 0;
    for (int c = 0; c < shape.columns; ++c) total += operands.dy(j, c);
    ASSERT_NEAR(bias[j], total, tolerance<Real>(shape.columns));
    for (int i = 0; i < shape.inputs; ++i) {
      double sum = 0;
      for (int c = 0; c < shape.columns; ++c) sum += double{operands.x(i, c)} * operands.dy(j, c);
      ASSERT_NEAR(gradient[i * shape.outputs + j], sum, tolerance<Real>(shape.columns)) << name_of(level);
    }
  }
}

TEST(Layer, ForwardAgainstANaiveLoop) {
  for (const Shape& shape : shapes) {
    for (const SimdLevel level : levels()) check_forward<float>(shape, level);
    check_forward<double>(shape, SimdLevel::portable);
  }
}

TEST(Layer, ResidualsAndLogLikelihoodsAgainstANaiveLoop) {
  for (const Shape& shape : shapes) {
    for (const SimdLevel level : levels()) check_residual<float>(shape, level);
    check_residual<double>(shape, SimdLevel::portable);
  }
}

TEST(Layer, BackwardAgainstANaiveLoop) {
  for (const Shape& shape : shapes) {
    for (const SimdLevel level : levels()) check_backward<float>(shape, level);
    check_backward<double>(shape, SimdLevel::portable);
  }
}

TEST(Layer, WeightGradientAgainstANaiveLoop) {
  for (const Shape& shape : shapes) {
    for (const SimdLevel level : levels()) check_weight_gradient<float>(shape, level);
    check_weight_gradient<double>(shape, SimdLevel::portable);
  }
}

// One thread with all columns and several threads with some columns each must give the same bits.
template <class Element>
void check_split(const Shape& shape, SimdLevel level) {
  const Operands<Sum<Element>> operands(shape);
  PackedLayer<Element> layer(shape.inputs, shape.outputs, Directions::both, level);
  layer.pack(operands.weights, operands.bias);
  Batch<Element> x(shape.inputs, shape.columns), dy(shape.outputs, shape.columns);
  Matrix<double> exact(shape.inputs, shape.columns);
  for (int c = 0; c < shape.columns; ++c)
    for (int i = 0; i < shape.inputs; ++i) exact(i, c) = operands.x(i, c);
  fill_columns<Element>(exact, x);
  const auto run = [&](const std::vector<int>& bounds) {
    std::vector<double> value(shape.columns);
    Batch<Element> y(shape.outputs, shape.columns), r(shape.outputs, shape.columns);
    Batch<Element> dx(shape.inputs, shape.columns);
    Batch<Sum<Element>> dz(shape.inputs, shape.columns);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const int begin = bounds[i], end = bounds[i + 1];
      const auto part = [&](auto& batch) { return batch.view().columns(begin, end); };
      layer.forward(part(x), Activation::softplus, part(y));
      const std::span<const std::uint32_t> datum(operands.datum);
      layer.forward_residual(part(x), Density::bernoulli, {operands.data.view(), datum.subspan(begin, end - begin)},
                             part(r), std::span(value).subspan(begin, end - begin));
      layer.backward(part(r), Activation::tanh, part(x), part(dx));
      layer.backward_input(part(r), part(dz));
    }
    std::vector<unsigned char> bytes;
    const auto keep = [&](const void* from, std::size_t size) {
      const auto* begin = static_cast<const unsigned char*>(from);
      bytes.insert(bytes.end(), begin, begin + size);
    };
    for (int c = 0; c < shape.columns; ++c) {
      keep(y.view().column(c), sizeof(Element) * shape.outputs);
      keep(r.view().column(c), sizeof(Element) * shape.outputs);
      keep(dx.view().column(c), sizeof(Element) * shape.inputs);
      keep(dz.view().column(c), sizeof(Sum<Element>) * shape.inputs);
      keep(&value[c], sizeof(double));
    }
    return bytes;
  };
  const auto whole = run({0, shape.columns});
  EXPECT_EQ(run({0, 1, 3, 6, 10, 15, 21, 28, 36, 37}), whole) << name_of(level);
  EXPECT_EQ(run({0, 18, 37}), whole) << name_of(level);
}

TEST(Layer, AColumnsBitsDoNotDependOnItsShare) {
  for (const Shape& shape : {Shape{13, 64, 37}, Shape{64, 101, 37}, Shape{50, 200, 37}}) {
    for (const SimdLevel level : levels()) check_split<float>(shape, level);
    check_split<double>(shape, SimdLevel::portable);
    if (supports_bf16(SimdLevel::avx512)) check_split<Bf16>(shape, SimdLevel::avx512);
  }
}

// One step of a panel of each level, some steps, and all.
template <class Element>
void check_nearest_cache(const Shape& shape, SimdLevel level) {
  const Operands<Sum<Element>> operands(shape);
  const Kernels<Element>& kernels = kernels_of<Element>(level);
  Batch<Element> packed(row_count(kernels.packed_size(shape.outputs, shape.inputs)), 1), x(shape.inputs, shape.columns);
  Batch<Sum<Element>> bias(shape.outputs, 1);
  std::ranges::copy(operands.bias, bias.view().data());
  Matrix<double> exact(shape.inputs, shape.columns);
  for (int c = 0; c < shape.columns; ++c)
    for (int i = 0; i < shape.inputs; ++i) exact(i, c) = operands.x(i, c);
  fill_columns<Element>(exact, x);
  kernels.pack({.units = shape.outputs,
                .depth = shape.inputs,
                .from = operands.weights.data(),
                .unit_stride = 1,
                .depth_stride = static_cast<std::size_t>(shape.outputs)},
               packed.view().data());
  const auto run = [&](int near_bytes) {
    Batch<Sum<Element>> y(shape.outputs, shape.columns);
    kernels.multiply({.depth = shape.inputs,
                      .units = shape.outputs,
                      .columns = shape.columns,
                      .weights = packed.view().data(),
                      .bias = bias.view().data(),
                      .x = x.view().data(),
                      .x_stride = x.view().stride(),
                      .y = nullptr,
                      .y_stride = y.view().stride(),
                      .finish = Finish::sum,
                      .near_bytes = near_bytes,
                      .sum = y.view().data()});
    std::vector<Sum<Element>> values;
    for (int c = 0; c < shape.columns; ++c)
      values.insert(values.end(), y.view().column(c), y.view().column(c) + shape.outputs);
    return values;
  };
  const auto whole = run(0);
  for (const int near_bytes : {32, 64, 96, 320, 5000, 32768})
    EXPECT_EQ(run(near_bytes), whole) << name_of(level) << " " << near_bytes;
}

// Sums that wait in memory while weights stay in the nearest cache have the bits of sums that do not.
TEST(Layer, BitsDoNotDependOnTheNearestCache) {
  for (const Shape& shape : {Shape{200, 200, 70}, Shape{784, 26, 130}, Shape{51, 101, 9}}) {
    for (const SimdLevel level : levels()) check_nearest_cache<float>(shape, level);
    check_nearest_cache<double>(shape, SimdLevel::portable);
    if (supports_bf16(SimdLevel::avx512)) check_nearest_cache<Bf16>(shape, SimdLevel::avx512);
  }
}

TEST(Layer, WeightGradientBitsDoNotDependOnHowManyColumnsAreTakenAtOnce) {
  const Shape shape{64, 101, 130};
  const Operands<float> operands(shape);
  for (const SimdLevel level : levels()) {
    std::vector<float> whole(operands.weights.size()), cut(operands.weights.size());
    weight_gradient<float>(operands.x, operands.dy, 0, 64, whole, level, SumsFrom::zero, 130);
    for (const int at_once : {1, 7, 102}) {
      std::ranges::fill(cut, 1.0f);
      weight_gradient<float>(operands.x, operands.dy, 0, 64, cut, level, SumsFrom::zero, at_once);
      EXPECT_EQ(whole, cut) << name_of(level) << " " << at_once;
    }
  }
}

TEST(Layer, WeightGradientBitsDoNotDependOnTheShareOfRows) {
  const Shape shape{64, 101, 37};
  const Operands<float> operands(shape);
  for (const SimdLevel level : levels()) {
    std::vector<float> whole(operands.weights.size()), shared(operands.weights.size());
    weight_gradient<float>(operands.x, operands.dy, 0, 64, whole, level);
    for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 1}, {1, 24}, {24, 64}})
      weight_gradient<float>(operands.x, operands.dy, begin, end, shared, level);
    EXPECT_EQ(whole, shared);
  }
}

TEST(Layer, GradientBitsDoNotDependOnTheShareOfColumns) {
  const Shape shape{64, 101, 37};
  const Operands<float> operands(shape);
  const BatchView<const float> x = operands.x, dy = operands.dy;
  for (const SimdLevel level : levels()) {
    std::vector<float> whole(operands.weights.size()), shared(operands.weights.size(), 1), bias(101),
        shared_bias(101, 1);
    weight_gradient<float>(x, dy, 0, 64, whole, level);
    bias_gradient<float>(dy, 0, 101, bias);
    for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 5}, {5, 5}, {5, 6}, {6, 37}}) {
      const SumsFrom from = begin == 0 ? SumsFrom::zero : SumsFrom::before;
      weight_gradient<float>(x.columns(begin, end), dy.columns(begin, end), 0, 64, shared, level, from);
      bias_gradient<float>(dy.columns(begin, end), 0, 101, shared_bias, from);
    }
    EXPECT_EQ(whole, shared);
    EXPECT_EQ(bias, shared_bias);
  }
}

// Weights and activations have 8 significant bits: an error of 2⁻⁹ in each factor of a term.
TEST(Layer, Bf16AgainstANaiveLoop) {
  if (!supports_bf16(SimdLevel::avx512)) GTEST_SKIP() << "this CPU has no bf16 products";
  for (const Shape& shape : shapes) {
    const Operands<float> operands(shape);
    PackedLayer<Bf16> layer(shape.inputs, shape.outputs, Directions::both, SimdLevel::avx512);
    layer.pack(operands.weights, operands.bias);
    Matrix<double> exact(shape.inputs, shape.columns);
    for (int c = 0; c < shape.columns; ++c)
      for (int i = 0; i < shape.inputs; ++i) exact(i, c) = operands.x(i, c);
    Batch<Bf16> x(shape.inputs, shape.columns), y(shape.outputs, shape.columns);
    fill_columns<Bf16>(exact, x);
    layer.forward(x, Activation::relu, y);
    for (int c = 0; c < shape.columns; ++c)
      for (int i = 0; i < shape.outputs; ++i) {
        const std::uint32_t bits = static_cast<std::uint32_t>(y(i, c).bits) << 16;
        float stored;
        std::memcpy(&stored, &bits, sizeof stored);
        const auto [a, size] = operands.output(i, c);
        ASSERT_NEAR(stored, std::max(0.0, a), 0.01 * size);
      }
  }
}

TEST(Layer, ExtremeLogitsAreFiniteAndNaNsAreNotHidden) {
  for (const SimdLevel level : levels()) {
    PackedLayer<float> layer(1, 5, Directions::forward, level);
    layer.pack(std::vector<float>{1e3f, -1e3f, 90.0f, -90.0f, 0.0f}, {});
    Batch<float> x(1, 2), y(5, 2), data(5, 2);
    x(0, 0) = 1;
    x(0, 1) = std::nanf("");
    std::vector<double> value(2);
    layer.forward_residual(x, Density::bernoulli, {data.view(), std::vector<std::uint32_t>{0, 1}}, y, value);
    const std::vector<float> expected = {-1, 0, -1, 0, -0.5f};
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(y(i, 0), expected[i], 2e-7);
    EXPECT_NEAR(value[0], -(1000 + 90 + std::log(2)), 1e-4);
    EXPECT_TRUE(std::isnan(value[1]));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(y(i, 1)));
  }
}

TEST(Simd, TheEnvironmentForcesALevel) {
  const char* forced = std::getenv("HONE_SIMD");
  if (forced) {
    EXPECT_EQ(name_of(simd_level()), forced);
  } else {
    EXPECT_EQ(simd_level(), levels().back());
  }
}

int level_with(const char* forced) {
  setenv("HONE_SIMD", forced, 1);
  try {
    simd_level();
  } catch (const InputError& error) {
    std::fputs(error.what(), stderr);
    return 2;
  }
  return 0;
}

TEST(SimdDeathTest, AnUnknownLevelIsAnInputError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(level_with("sse9")), testing::ExitedWithCode(2), "may be portable, avx2 or avx512");
  EXPECT_EXIT(std::exit(level_with("portable")), testing::ExitedWithCode(0), "");
}

TEST(Simd, Bf16WhereThereIsNoneIsAnInputError) {
  EXPECT_THROW(kernels_of<Bf16>(SimdLevel::portable), InputError);
  EXPECT_THROW(PackedLayer<Bf16>(3, 4, Directions::both, SimdLevel::avx2), InputError);
}

TEST(Peak, IsAPlausibleNumber) {
  for (const SimdLevel level : levels()) {
    const double gflops = measure_fma_peak(level);
    EXPECT_GT(gflops, 0.1);
    EXPECT_LT(gflops, 10'000);
  }
  Team team(2);
  EXPECT_GT(measure_fma_peak_together(team), 0.1);
}

}  // namespace
}  // namespace hone
