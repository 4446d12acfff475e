// Decoders of thousands of rows: log p(x | z) and its gradient against double precision, for tf32 with operands rounded
// to the ten bits of mantissa that the products have.

#include "hone/engine/cuda/evaluate/evaluate.cuh"
#include "tests/cuda/support.cuh"

namespace hone::test {
namespace {

using cuda::BatchDecoder;
using cuda::Math;
using cuda::Memory;

struct Shape {
  std::vector<int> units;  // z, hidden layers, pixels
  int rows, rows_per_datum;
  bool biases = true;
  Density density = Density::bernoulli;
  Activation activation = Activation::relu;
};

double to_ten_bits(double x) {
  if (x == 0) return 0;
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

class CudaDecoder : public CudaTest {
 protected:
  void make(const Shape& shape) {
    shape_ = shape;
    net_ = cuda::Net();
    net_.depth = static_cast<int>(shape.units.size()) - 1;
    net_.activation = shape.activation;
    std::size_t at = 0;
    for (int l = 0; l < net_.depth; ++l) {
      cuda::Layer& layer = net_.layer[l];
      layer = {shape.units[l], shape.units[l + 1], cuda::padded_width(shape.units[l + 1]), at, 0, shape.biases};
      at += static_cast<std::size_t>(layer.inputs) * layer.ld;
      layer.bias = at;
      at += layer.ld;
    }
    std::uint32_t stream = 0;
    const auto normals = [&](std::size_t count) {
      std::vector<double> values(count);
      PhiloxSource(7).normals({Purpose::synthesize, ++stream}, values);
      return values;
    };
    parameters_.assign(at, 0.0f);
    for (int l = 0; l < net_.depth; ++l) {
      const cuda::Layer& layer = net_.layer[l];
      const std::vector<double> w = normals(static_cast<std::size_t>(layer.inputs) * layer.outputs);
      const std::vector<double> b = normals(layer.outputs);
      for (int i = 0; i < layer.inputs; ++i)
        for (int j = 0; j < layer.outputs; ++j)
          parameters_[layer.weight + static_cast<std::size_t>(i) * layer.ld + j] = static_cast<float>(
              w[static_cast<std::size_t>(i) * layer.outputs + j] / std::sqrt(static_cast<double>(layer.inputs)));
      for (int j = 0; j < layer.outputs; ++j) parameters_[layer.bias + j] = static_cast<float>(0.5 * b[j]);
    }
    latent_ = shape.units.front();
    ld_ = cuda::padded_width(latent_);
    ldx_ = cuda::padded_width(shape.units.back());
    const std::vector<double> z = normals(static_cast<std::size_t>(shape.rows) * latent_);
    z_.assign(static_cast<std::size_t>(shape.rows) * ld_, 0.0f);
    for (int m = 0; m < shape.rows; ++m)
      for (int d = 0; d < latent_; ++d)
        z_[static_cast<std::size_t>(m) * ld_ + d] = static_cast<float>(z[static_cast<std::size_t>(m) * latent_ + d]);
    const int data = (shape.rows + shape.rows_per_datum - 1) / shape.rows_per_datum;
    const std::vector<double> x = normals(static_cast<std::size_t>(data) * shape.units.back());
    x_.assign(static_cast<std::size_t>(data) * ldx_, 0.0f);
    for (int n = 0; n < data; ++n)
      for (int j = 0; j < shape.units.back(); ++j)
        x_[static_cast<std::size_t>(n) * ldx_ + j] = x[static_cast<std::size_t>(n) * shape.units.back() + j] > 0.3;
  }

  double activated(double a) const { return net_.activation == Activation::relu ? std::max(a, 0.0) : std::tanh(a); }
  double sloped(double h) const { return net_.activation == Activation::relu ? (h > 0 ? 1.0 : 0.0) : 1 - h * h; }

  void expected(bool rounds, std::vector<double>& values, std::vector<double>& gradients) const {
    values.clear();
    gradients.clear();
    const auto operand = [rounds](double x) { return rounds ? to_ten_bits(x) : x; };
    std::vector<double> parameters;
    for (const float p : parameters_) parameters.push_back(operand(p));
    const auto weight = [&](int l, int i, int j) {
      const cuda::Layer& layer = net_.layer[l];
      return parameters[layer.weight + static_cast<std::size_t>(i) * layer.ld + j];
    };
    for (int m = 0; m < shape_.rows; ++m) {
      std::vector<std::vector<double>> h(net_.depth + 1);
      for (int d = 0; d < latent_; ++d) h[0].push_back(operand(z_[static_cast<std::size_t>(m) * ld_ + d]));
      for (int l = 0; l < net_.depth; ++l)
        for (int j = 0; j < net_.layer[l].outputs; ++j) {
          double a = shape_.biases ? parameters_[net_.layer[l].bias + j] : 0;
          for (int i = 0; i < net_.layer[l].inputs; ++i) a += h[l][i] * weight(l, i, j);
          h[l + 1].push_back(l + 1 < net_.depth ? operand(activated(a)) : a);
        }
      double value = 0;
      std::vector<double> delta;
      for (int j = 0; j < shape_.units.back(); ++j) {
        const double a = h.back()[j], x = x_[static_cast<std::size_t>(m / shape_.rows_per_datum) * ldx_ + j];
        if (shape_.density == Density::bernoulli) {
          value += x * a - std::max(a, 0.0) - std::log1p(std::exp(-std::abs(a)));
          delta.push_back(x - 1 / (1 + std::exp(-a)));
        } else {
          value += -0.5 * (x - a) * (x - a) / gaussian_variance - 0.5 * std::log(2 * M_PI * gaussian_variance);
          delta.push_back((x - a) / gaussian_variance);
        }
      }
      values.push_back(value);
      for (int l = net_.depth - 1; l >= 0; --l) {
        std::vector<double> below;
        for (double& d : delta) d = operand(d);
        for (int i = 0; i < net_.layer[l].inputs; ++i) {
          double sum = 0;
          for (int j = 0; j < net_.layer[l].outputs; ++j) sum += delta[j] * weight(l, i, j);
          below.push_back(l > 0 ? sum * sloped(h[l][i]) : sum);
        }
        delta = below;
      }
      gradients.insert(gradients.end(), delta.begin(), delta.end());
    }
  }

  void found(Math math, bool gradient, std::vector<double>& values, std::vector<double>& gradients) const {
    const cuda::Queue queue;
    const Memory<float> parameters{std::span<const float>(parameters_)}, z{std::span<const float>(z_)},
        x{std::span<const float>(x_)}, answer(z_.size());
    const BatchDecoder decoder({net_, parameters.data(), shape_.density, math}, shape_.rows, gradient, queue);
    const Memory<float> partial(static_cast<std::size_t>(shape_.rows) * decoder.parts());
    decoder.run(shape_.rows, z.data(),
                {.x = x.data(), .rows_per_datum = shape_.rows_per_datum, .partial = partial.data()},
                gradient ? answer.data() : nullptr);
    queue.wait();
    const std::vector<float> sums = partial.download(), slopes = answer.download();
    values.assign(shape_.rows, 0);
    for (std::size_t i = 0; i < sums.size(); ++i) values[i % shape_.rows] += sums[i];
    gradients.clear();
    for (int m = 0; m < shape_.rows; ++m)
      for (int d = 0; d < latent_; ++d) gradients.push_back(slopes[static_cast<std::size_t>(m) * ld_ + d]);
  }

  void check(Math math, double of_value, double of_gradient) const {
    std::vector<double> values, gradients, made, slopes;
    expected(math == Math::tf32, values, gradients);
    for (const bool gradient : {false, true}) {
      found(math, gradient, made, slopes);
      EXPECT_LT(relative_error(values, made), of_value);
      if (!gradient) continue;
      // except for a few rows whose unit at a ReLU's kink fell on the other side
      const double corners = shape_.rows < 16 ? 0 : 1 + shape_.rows / 5000;
      EXPECT_LE(share_beyond(gradients, slopes, of_gradient), corners / shape_.rows);
    }
  }

  Shape shape_;
  cuda::Net net_;
  std::vector<float> parameters_, z_, x_;
  int latent_ = 0, ld_ = 0, ldx_ = 0;
};

TEST_F(CudaDecoder, AgainstDouble) {
  const std::vector<Shape> shapes = {
      {{10, 200, 200, 784}, 523, 1},
      {{50, 784}, 523, 1},
      {{3, 64, 13, 101}, 37, 5},
      {{1, 1, 1, 1}, 1, 1},
      {{16, 208, 208, 16}, 17, 17},
      {{17, 207, 3, 300}, 130, 7},
      {{64, 208, 5}, 100, 2},
      {{2, 30, 257}, 9, 1},
      {{64, 1000}, 16, 3},
      {{5, 3}, 33, 1, false},
      {{3, 64, 13, 101}, 15003, 7},  // tiles of other sizes
      {{20, 30, 25}, 15003, 1},
      {{5, 3}, 15003, 512},
      {{9, 40, 41, 250}, 40, 1, false},
      {{10, 209, 200, 100}, 40, 1},
      {{65, 100}, 40, 1},
      {{10, 30, 30, 30, 100}, 40, 1},
      {{10, 209, 200, 100}, 2003, 3},
      {{65, 256}, 15003, 7},
      {{10, 256, 30}, 15003, 1},
      {{10, 130, 130, 256}, 8003, 1, true, Density::bernoulli, Activation::tanh},
      {{65, 256}, 15003, 1, false, Density::gaussian},
      {{10, 30, 30, 100}, 40, 1, true, Density::bernoulli, Activation::tanh},
      {{10, 30, 30, 100}, 40, 1, true, Density::gaussian},
  };
  for (const Shape& shape : shapes) {
    make(shape);
    SCOPED_TRACE(testing::PrintToString(shape.units));
    check(Math::tf32, 1e-4, 2e-3);
    check(Math::fp32, 2e-5, 2e-4);
  }
}

// Logits far beyond what an exponential can hold.
TEST_F(CudaDecoder, LargeLogits) {
  for (const std::vector<int>& units : {std::vector{10, 200, 200, 784}, std::vector{50, 784}}) {
    make({units, 40, 1});
    for (float& w : parameters_) w *= 40;
    check(Math::tf32, 1e-4, 2e-3);
  }
}

}  // namespace
}  // namespace hone::test
