#pragma once

#include "hone/family/family.hpp"
#include "hone/family/normal.hpp"

namespace hone {

/// q(z) = Σ_k w_k N(z | μ_k, Σ_k), w = softmax(a) (eq2:mixture_pdf). θ holds μ_1, scale_1, …, μ_K, scale_K, a.
class MixtureFamily final : public Family {
 public:
  /// Components of equal weight.
  MixtureFamily(int dimension, int components, Covariance covariance);

  /// K
  int components() const override { return components_; }
  /// The form of the components' covariances.
  Covariance covariance() const { return covariance_; }
  /// μ_k, part of θ.
  std::span<double> mean(int component);
  /// Standard deviations, or the packed Cholesky factor, of component k; part of θ.
  std::span<double> scale(int component);
  /// a, part of θ.
  std::span<double> logits();
  /// Component k, a view of θ.
  Normal normal(int component) const;

  void log_weights(std::span<double> out) const override;
  void set_log_weights(std::span<const double> log_weight) override;
  void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
            std::uint32_t first_datum = 0) const override;
  void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override;
  void add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                    std::span<double> gradient) const override;
  void add_score(MatrixView<const double> z, std::span<const double> coefficient,
                 std::span<double> gradient) const override;
  void add_draw_score(const Draws& draws, std::span<const double> coefficient,
                      std::span<double> gradient) const override;
  void add_component_score(const Draws& draws, std::span<const double> coefficient,
                           std::span<double> gradient) const override;
  void project() override;
  std::vector<std::size_t> positive_parameters() const override;
  void moments(std::span<double> mean, std::span<double> sd) const override;
  std::optional<Normal> component(int k) const override { return normal(k); }
  std::optional<LocationScale> standardize() override;

 private:
  struct Posterior;
  std::size_t stride() const;  // parameters per component
  NormalGradient split(int component, std::span<double> gradient) const;

  int components_;
  Covariance covariance_;
};

}  // namespace hone
