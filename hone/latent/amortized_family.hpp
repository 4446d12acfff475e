#pragma once

#include <memory>
#include <span>
#include <string>

#include "hone/base/want.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// What an amortized family takes from the encoder and from the random numbers, per datum. The encoder is two networks:
/// one for `location`, and one for `scale`.
struct AmortizedShape {
  int location;  ///< outputs of the first network, which learns by rate_mean
  int scale;     ///< outputs of the second network, which learns by rate_scale
  int positive;  ///< how many of `scale`, from the first on, become positive: log(exp(s) + exp(output)), s = 1e-4
  int noise;     ///< standard normal numbers that a draw is made of
};

/// The parameters of q for some data, one datum per column.
struct AmortizedParameters {
  MatrixView<const double> location;  ///< (AmortizedShape::location, n)
  MatrixView<const double> scale;     ///< (AmortizedShape::scale, n)
  /// n
  int count() const { return location.cols(); }
};

/// A gradient with respect to these parameters, of the same shape.
struct AmortizedGradient {
  MatrixView<double> location;  ///< like the parameters
  MatrixView<double> scale;     ///< like the parameters
};

/// A family of q(z | x) whose parameters per datum are outputs of the encoder. It is a set of formulas without state:
/// a run calls them for a few data at a time, from several threads at once. Column c of every argument belongs to datum
/// c, and there is one z per datum. A result must depend on its own column alone: then results depend neither on
/// threads nor on ranks. The add_* functions accumulate into `gradient`, with the coefficient of each datum.
class AmortizedFamily {
 public:
  virtual ~AmortizedFamily() = default;

  /// Names the second network in checkpoints, so that a state continues with the family that it was trained with.
  /// Letters, digits and hyphens; not "mean" or "decoder".
  virtual std::string name() const = 0;
  /// What it takes for a z of `latent` dimensions. Throws KeyError if it has none of this size.
  virtual AmortizedShape shape(int latent) const = 0;

  /// z = h(noise), with independent standard normal `noise`.
  virtual void draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const = 0;
  /// log q and ∇_z log q, those that are wanted.
  virtual void log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want, std::span<double> value,
                           MatrixView<double> gradient) const = 0;
  /// Σ_c coefficient_c dz_cᵀ ∇h(noise_c), the gradient through the draw: eq. gradient_term1
  virtual void add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<const double> dz,
                            std::span<const double> coefficient, const AmortizedGradient& gradient) const = 0;
  /// Σ_c coefficient_c ∇ log q(z_c)
  virtual void add_score(const AmortizedParameters& q, MatrixView<const double> z, std::span<const double> coefficient,
                         const AmortizedGradient& gradient) const = 0;
  /// The same at draws z = h(noise), for families that have it from the noise.
  virtual void add_draw_score(const AmortizedParameters& q, [[maybe_unused]] MatrixView<const double> noise,
                              MatrixView<const double> z, std::span<const double> coefficient,
                              const AmortizedGradient& gradient) const {
    add_score(q, z, coefficient, gradient);
  }

  /// Whether the entropy of q has a closed form, which the next two functions know. Otherwise it is sampled.
  virtual bool has_analytic_entropy() const { return false; }
  /// The entropy of each datum's q, less latent / 2: of a Gaussian, the logarithm of its normalizer.
  virtual void log_normalizer(const AmortizedParameters& q, std::span<double> out) const;
  /// Σ_c coefficient_c ∇ of it
  virtual void add_entropy_gradient(const AmortizedParameters& q, std::span<const double> coefficient,
                                    const AmortizedGradient& gradient) const;

  /// Means and standard deviations of each datum's q, (D, n): what `encode` returns, and what evaluation starts from. A
  /// family without them gives a centre and a width.
  virtual void moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const = 0;
};

/// The paper's q(z | x): z = μ + σ ε with a mean and a standard deviation per dimension.
class DiagonalGaussian final : public AmortizedFamily {
 public:
  std::string name() const override { return "sd"; }
  AmortizedShape shape(int latent) const override { return {latent, latent, latent, latent}; }
  void draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const override;
  void log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override;
  void add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<const double> dz,
                    std::span<const double> coefficient, const AmortizedGradient& gradient) const override;
  void add_score(const AmortizedParameters& q, MatrixView<const double> z, std::span<const double> coefficient,
                 const AmortizedGradient& gradient) const override;
  void add_draw_score(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<const double> z,
                      std::span<const double> coefficient, const AmortizedGradient& gradient) const override;
  bool has_analytic_entropy() const override { return true; }
  void log_normalizer(const AmortizedParameters& q, std::span<double> out) const override;
  void add_entropy_gradient(const AmortizedParameters& q, std::span<const double> coefficient,
                            const AmortizedGradient& gradient) const override;
  void moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const override;
};

/// A q(z | x) with correlations: z = μ + σ ε + V η with R factors, the columns of V. Its covariance is
/// diag(σ²) + V Vᵀ. `scale` is σ, which is positive, and then V, column after column.
class LowRankGaussian final : public AmortizedFamily {
 public:
  /// Throws KeyError unless `rank` is at least 1.
  explicit LowRankGaussian(int rank);
  int rank() const { return rank_; }  ///< R

  std::string name() const override { return "low-rank"; }
  AmortizedShape shape(int latent) const override;
  void draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const override;
  void log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override;
  void add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<const double> dz,
                    std::span<const double> coefficient, const AmortizedGradient& gradient) const override;
  void add_score(const AmortizedParameters& q, MatrixView<const double> z, std::span<const double> coefficient,
                 const AmortizedGradient& gradient) const override;
  bool has_analytic_entropy() const override { return true; }
  void log_normalizer(const AmortizedParameters& q, std::span<double> out) const override;
  void add_entropy_gradient(const AmortizedParameters& q, std::span<const double> coefficient,
                            const AmortizedGradient& gradient) const override;
  void moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const override;

 private:
  int rank_;
};

}  // namespace hone
