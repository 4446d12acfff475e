#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hone/target/target.hpp"

namespace hone {

// A normalised Gaussian of any dimension.
class GaussianTarget final : public Target {
 public:
  GaussianTarget(std::vector<double> mean, const Matrix<double>& covariance);
  int dimension() const override { return static_cast<int>(mean_.size()); }

  // The log density at one point; writes the gradient unless it is empty.
  double at(std::span<const double> z, std::span<double> gradient) const;

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  std::vector<double> mean_;
  Matrix<double> precision_;
  double log_normalizer_ = 0;
};

// A normalised mixture of Gaussians.
class MixtureTarget final : public Target {
 public:
  MixtureTarget(std::vector<double> weights, std::vector<GaussianTarget> components);
  int dimension() const override { return components_.front().dimension(); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  double at(std::span<const double> z, std::span<double> gradient) const;

  std::vector<double> log_weights_;
  std::vector<GaussianTarget> components_;
};

// The banana of the paper's table of toys: (z1, z2 + z1² + 1) is Gaussian with unit variances and correlation 0.9.
class BananaTarget final : public Target {
 public:
  BananaTarget();
  int dimension() const override { return 2; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  GaussianTarget straight_;
};

// The three toy distributions of the paper (tab:toy_distributions).
enum class Toy { gaussian, mixture, banana };
std::unique_ptr<Target> make_toy(Toy toy);

}  // namespace hone
