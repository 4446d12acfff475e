#pragma once

#include "hone/family/family.hpp"
#include "hone/family/normal.hpp"

namespace hone {

/// q(z) = N(μ, Σ) with a diagonal covariance or a full one through its Cholesky factor.
class GaussianFamily final : public Family {
 public:
  /// Mean 0 and standard deviations 1.
  GaussianFamily(int dimension, Covariance covariance);

  /// The form of the covariance.
  Covariance covariance() const { return covariance_; }
  /// μ, part of θ.
  std::span<double> mean() { return parameters().first(dimension()); }
  /// Standard deviations, or the packed Cholesky factor; part of θ.
  std::span<double> scale() { return parameters().subspan(dimension()); }
  /// q itself, a view of θ.
  Normal normal() const;

  void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
            std::uint32_t first_datum = 0) const override;
  void log_density_at(const Draws& draws, Want want, std::span<double> value,
                      MatrixView<double> gradient) const override;
  void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override;
  void add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                    std::span<double> gradient) const override;
  void add_score(MatrixView<const double> z, std::span<const double> coefficient,
                 std::span<double> gradient) const override;
  void add_draw_score(const Draws& draws, std::span<const double> coefficient,
                      std::span<double> gradient) const override;
  bool has_analytic_entropy() const override { return true; }
  /// log N_θ
  double log_normalizer(int) const override { return normal().log_normalizer(); }
  void add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const override;
  void project() override;
  std::vector<std::size_t> positive_parameters() const override;
  void moments(std::span<double> mean, std::span<double> sd) const override;
  std::optional<Normal> component(int) const override { return normal(); }
  std::optional<LocationScale> standardize() override;

 private:
  NormalGradient split(std::span<double> gradient) const;

  Covariance covariance_;
};

}  // namespace hone
