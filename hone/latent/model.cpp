#include "hone/latent/model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/scalar.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

std::vector<Windows> reversed(std::vector<Windows> windows) {
  std::ranges::reverse(windows);
  return windows;
}

// Counts the parameters before anything is allocated.
void check_size(const ModelConfig& model, const AmortizedShape& q, ImageShape image) {
  constexpr double most = 5e8;
  const auto count = [](double inputs, const std::vector<int>& hidden, double outputs) {
    double sum = 0;
    for (const double width : hidden) {
      sum += (inputs + 1) * width;
      inputs = width;
    }
    return sum + (inputs + 1) * outputs;
  };
  const std::vector<Windows> windows = convolutions(model, image);
  double kernels = 0;
  for (const Windows& w : windows) kernels += static_cast<double>(w.depth()) * w.coarse;
  const double values = windows.empty() ? image.pixels() : windows.back().small();
  const double outputs = windows.empty() ? facts_of(model.density()).outputs * values : values;
  const double decoder = kernels + count(model.latent, model.hidden, outputs),
               encoder = 2 * kernels + count(values, model.encoder_hidden, q.location) +
                         count(values, model.encoder_hidden, q.scale);
  if (decoder + encoder <= most) return;
  const std::string key = 3 * kernels > most ? "channels" : model.hidden.empty() ? "latent" : "hidden";
  throw KeyError(decoder > encoder || 3 * kernels > most ? key : "encoder_hidden",
                 "the networks would have more than 500,000,000 parameters");
}

void check_convolutions(const ModelConfig& config) {
  if (config.channels.empty()) return;
  if (config.kind != ModelKind::vae) throw KeyError("channels", "convolutions are for model vae");
  if (facts_of(config.density()).outputs != 1)
    throw KeyError("channels",
                   "convolutions go with likelihoods that have one output per value: bernoulli, gaussian, "
                   "categorical and poisson");
  if (config.initial == InitialWeights::paper)
    throw KeyError("init", "the paper has no convolutions; expected scaled with channels");
  for (const int channels : config.channels)
    if (channels < 1) throw KeyError("channels", "every convolution needs at least one channel");
}

Stream simulation(int datum, std::uint32_t step) {
  return {Purpose::synthesize, assessment_iteration, static_cast<std::uint32_t>(datum), step};
}

void check_likelihood(const ModelConfig& config) {
  const LikelihoodFacts facts = facts_of(config.density());
  if (config.likelihood != config.density() && config.likelihood != ModelConfig().likelihood)
    throw KeyError("likelihood", detail::format("this model has the likelihood {}; with another one it is mf",
                                                std::string(facts.name)));
  if (facts.grouped && config.categories < 2)
    throw KeyError("categories", "the categorical likelihood needs it: how many values make a group, at least 2");
  if (!facts.grouped && config.categories != 0)
    throw KeyError("categories", "only the categorical likelihood uses it; leave it out");
}

const DataSet& checked(const ModelConfig& config, const AmortizedFamily& family, const DataSet& data) {
  check(config);
  if (data.size() == 0) throw InputError("there are no data to train on");
  if (config.categories > 0 && data.dimension() % config.categories != 0)
    throw KeyError("categories",
                   detail::format("{} does not divide the {} values of a datum", config.categories, data.dimension()));
  check_data(config.density(), {data.dimension(), config.categories}, config.missing, data);
  check_size(config, family.shape(config.latent), data.shape());
  return data;
}

}  // namespace

std::vector<Windows> convolutions(const ModelConfig& model, ImageShape image) {
  std::vector<Windows> all;
  for (const int channels : model.channels) {
    if (image.rows % 2 != 0 || image.cols % 2 != 0)
      throw KeyError("channels",
                     detail::format("convolution {} of {} would halve an image of {} × {} pixels; expected fewer "
                                    "convolutions, or data whose rows and columns can be halved as often",
                                    all.size() + 1, model.channels.size(), image.rows, image.cols));
    image.rows /= 2;
    image.cols /= 2;
    if (1.0 * image.rows * image.cols * channels > 1e8)
      throw KeyError("channels", detail::format("{} channels of {} × {} pixels are more than 100,000,000 units",
                                                channels, image.rows, image.cols));
    all.push_back({.rows = image.rows, .cols = image.cols, .fine = image.channels, .coarse = channels});
    image.channels = channels;
  }
  return all;
}

std::vector<double> mean_of(const DataSet& data) {
  std::vector<double> mean(data.dimension());
  std::vector<int> observed(data.dimension());
  Matrix<double> column(data.dimension(), 1);
  const auto each = [&](auto use) {
    for (int n = 0; n < data.size(); ++n) {
      data.expand(std::span<const int>(&n, 1), column.view());
      for (int i = 0; i < data.dimension(); ++i)
        if (!std::isnan(column(i, 0))) use(i);
    }
  };
  each([&](int i) { ++observed[i]; });
  each([&](int i) { mean[i] += column(i, 0) / observed[i]; });
  return mean;
}

void draw_prior(const RandomSource& random, int first, MatrixView<double> z) {
  for (int n = 0; n < z.cols(); ++n) random.normals(simulation(first + n, 0), z.column(n));
}

Density ModelConfig::density() const {
  switch (kind) {
    case ModelKind::vae:
    case ModelKind::mf:
      return likelihood;
    case ModelKind::logistic_mf:
      return Density::bernoulli;
    case ModelKind::gaussian_mf:
      return Density::gaussian;
    case ModelKind::poisson_mf:
      return Density::poisson;
  }
  throw Error("unknown model");
}

void check(const ModelConfig& config) {
  if (config.kind != ModelKind::vae && !config.hidden.empty())
    throw KeyError("hidden", "matrix factorization has no hidden layers");
  if (config.kind == ModelKind::vae && config.hidden.empty())
    throw KeyError("hidden", "a vae needs at least one hidden layer; without any it is mf");
  check_likelihood(config);
  check_convolutions(config);
}

template <class Real>
Model<Real>::Model(const ModelConfig& config, const DataSet& train, Gradients gradients,
                   std::shared_ptr<const AmortizedFamily> family)
    : density_(config.density()),
      initial_(config.initial),
      missing_(config.missing),
      gradients_(gradients),
      decoder_({.latent = config.latent,
                .hidden = config.hidden,
                .pixels = checked(config, *family, train).dimension(),
                .activation = config.activation,
                .density = density_,
                .categories = config.categories,
                .up = reversed(convolutions(config, train.shape()))},
               parameters_, gradients_),
      family_(std::move(family)),
      encoder_({.pixels = train.dimension(),
                .hidden = config.encoder_hidden,
                .shape = family_->shape(config.latent),
                .scale_name = family_->name(),
                .activation = config.activation,
                .down = convolutions(config, train.shape())},
               parameters_),
      shape_(train.shape()) {
  if (facts_of(density_).centred) centre_ = mean_of(train);
  if (initial_ == InitialWeights::scaled) length_ = mean_length(train);
}

template <class Real>
double Model<Real>::mean_length(const DataSet& train) const {
  constexpr int enough = 2000;
  const int step = std::max(1, train.size() / enough), count = (train.size() + step - 1) / step;
  Minibatch<Real> one = minibatch(1);
  double sum = 0;
  for (int n = 0; n < train.size(); n += step) {
    expand(train, std::span<const int>(&n, 1), 0, 1, one);
    const Real* x = one.view().column(0);
    for (int i = 0; i < train.dimension(); ++i) sum += square(x[i]);
  }
  return sum / count;
}

template <class Real>
double Model<Real>::input_scale() const {
  if (initial_ != InitialWeights::scaled) return 1;
  return std::max(1.0, std::sqrt(length_ / decoder_.pixels()));
}

template <class Real>
void Model<Real>::check(const DataSet& data, int first) const {
  if (data.size() > 0 && data.dimension() != decoder_.pixels())
    throw DataError("a datum has " + std::to_string(data.dimension()) + " values and the model " +
                    std::to_string(decoder_.pixels()));
  if (data.size() > 0) check_data(density_, decoder_.shape(), missing_, data, first);
}

template <class Real>
void Model<Real>::initialize(const RandomSource& random) {
  draw_weights(random);
  pack(0, 1);
}

template <class Real>
void Model<Real>::draw_weights(const RandomSource& random) {
  decoder_.initialize(random, initial_);
  encoder_.initialize(random, initial_, length_);
}

template <class Real>
void Model<Real>::pack(int part, int parts) {
  decoder_.pack(part, parts);
  encoder_.pack(part, parts);
}

template <class Real>
void Model<Real>::expand(const DataSet& data, std::span<const int> indices, int begin, int end,
                         Minibatch<Real>& out) const {
  thread_local Matrix<Real> columns;
  if (columns.rows() != data.dimension() || columns.cols() < end - begin)
    columns = Matrix<Real>(data.dimension(), end - begin);
  const MatrixView<Real> view = columns.view().columns(0, end - begin);
  data.expand(indices.subspan(begin, end - begin), view);
  for (int c = begin; c < end; ++c) {
    const std::span<Real> column = view.column(c - begin);
    for (std::size_t i = 0; i < centre_.size(); ++i) column[i] -= static_cast<Real>(centre_[i]);
    out.set(c, std::span<const Real>(column));
  }
}

template <class Real>
MinibatchFamily Model<Real>::q(const Minibatch<Real>& minibatch) const {
  MinibatchFamily q(family_, decoder_.latent(), minibatch.count());
  EncoderTape<Real> tape;
  encoder_.prepare(tape, minibatch.view());
  encoder_.forward(tape, 0, minibatch.count(), q.location(), q.scale());
  return q;
}

template <class Real>
SimulatedData Model<Real>::simulate(const RandomSource& random, int count) const {
  SimulatedData made{Matrix<double>(decoder_.latent(), count), {}};
  Matrix<double> x(decoder_.pixels(), count);
  draw_prior(random, 0, made.z);
  draw(random, 0, made.z, x);
  const auto values = x.view().flat();
  made.data = DataSet(std::vector<double>(values.begin(), values.end()), shape_);
  if (facts_of(density_).bits) made.data = packed_if_binary(std::move(made.data));
  return made;
}

template <class Real>
void Model<Real>::draw(const RandomSource& random, int first, MatrixView<const double> z, MatrixView<double> x) const {
  Matrix<double> a(decoder_.outputs(), x.cols());
  decoder_.outputs(z, a);
  std::vector<double> noise(decoder_.pixels());
  for (int n = 0; n < x.cols(); ++n) {
    if (facts_of(density_).noise == Noise::normal)
      random.normals(simulation(first + n, 1), noise);
    else
      random.uniforms(simulation(first + n, 1), noise);
    likelihood_draw(density_, decoder_.shape(), a.column(n), noise, x.column(n));
    for (std::size_t p = 0; p < centre_.size(); ++p) x.column(n)[p] += centre_[p];
  }
}

template <class Real>
void Model<Real>::mean(MatrixView<const double> z, MatrixView<double> out) const {
  decoder_.mean(z, out);
  for (int c = 0; c < out.cols(); ++c)
    for (std::size_t i = 0; i < centre_.size(); ++i) out.column(c)[i] += centre_[i];
}

// x = Wᵀ z + noise with z ~ N(0, I_D): x ~ N(0, WᵀW + s² I_P). With M = I_D + W Wᵀ / s², by Woodbury's formula,
//   log |WᵀW + s² I| = P log s² + log |M|,  xᵀ(…)⁻¹x = (xᵀx − (Wx)ᵀ M⁻¹ (Wx) / s²) / s².
template <class Real>
double Model<Real>::exact_log_likelihood(const Minibatch<Real>& data, int column) const {
  const int latent = decoder_.latent(), pixels = decoder_.pixels();
  const auto weight = parameters_.of(0);       // (D, P), the decoder's only tensor
  const Real* x = data.view().column(column);  // 0 where a value is missing
  int observed = 0;
  for (int p = 0; p < pixels; ++p) observed += data.observed(p, column);
  Matrix<double> m(latent, latent);
  std::vector<double> projected(latent);
  for (int i = 0; i < latent; ++i) {
    const Real* row = weight.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(pixels);
    for (int p = 0; p < pixels; ++p) projected[i] += static_cast<double>(row[p]) * x[p];
    for (int j = 0; j <= i; ++j) {
      const Real* other = weight.data() + static_cast<std::size_t>(j) * static_cast<std::size_t>(pixels);
      double sum = 0;
      for (int p = 0; p < pixels; ++p)
        if (data.observed(p, column)) sum += static_cast<double>(row[p]) * other[p];
      m(i, j) = m(j, i) = sum / gaussian_variance + (i == j);
    }
  }
  const std::vector<double> lower = cholesky(m);
  solve_lower(lower, projected, projected);
  double quadratic = 0, log_determinant = observed * std::log(gaussian_variance);
  for (int p = 0; p < pixels; ++p) quadratic += square(x[p]);
  for (int i = 0; i < latent; ++i) {
    quadratic -= square(projected[i]) / gaussian_variance;
    log_determinant += 2 * std::log(lower[packed(i, i)]);
  }
  return -0.5 * (observed * log_two_pi + log_determinant + quadratic / gaussian_variance);
}

template class Model<float>;
template class Model<double>;

}  // namespace hone
