#pragma once

#include "hone/family/family.hpp"
#include "hone/family/normal.hpp"

namespace hone {

// q(z) = Σ_k w_k N(z | μ_k, Σ_k), w = softmax(a) (eq2:mixture_pdf). θ holds μ_1, scale_1, …, μ_K, scale_K, a.
class MixtureFamily final : public Family {
 public:
  MixtureFamily(int dimension, int components, Covariance covariance);

  int components() const override { return components_; }
  Covariance covariance() const { return covariance_; }
  std::span<double> mean(int component);
  std::span<double> scale(int component);
  std::span<double> logits();
  Normal normal(int component) const;
  void log_weights(std::span<double> out) const;

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

 private:
  struct Posterior;
  std::size_t stride() const;  // parameters a component
  NormalGradient split(int component, std::span<double> gradient) const;

  int components_;
  Covariance covariance_;
};

}  // namespace hone
