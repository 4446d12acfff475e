#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hone/family/family.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

// A polynomial of degree two in standardised coordinates (z − centre) / scale: 1, x_i, x_i², and x_i x_j where there
// are coefficients for them.
class Quadratic {
 public:
  Quadratic(std::vector<double> centre, std::vector<double> scale, std::vector<double> coefficients);
  double operator()(std::span<const double> z) const;

 private:
  std::vector<double> centre_, scale_, coefficients_;
};

// log q as a function of z, recovered from its values at draws z (D, n) if q is a Gaussian: then one quadratic fits all
// values, within the digits of a text file. Nothing if no quadratic does, or if there are too few draws to
// tell.
std::optional<Quadratic> gaussian_through(MatrixView<const double> z, std::span<const double> log_q);

// The law of given draws e (D, n), as far as it is known: the draws themselves, and the density of a standard normal
// unless log q is known over z = m + L e.
class DrawnFamily final : public Family {
 public:
  DrawnFamily(MatrixView<const double> draws, const Whitening& whitening, std::optional<Quadratic> log_q);

  void draw(const RandomSource&, std::uint32_t, Draws& out, std::uint32_t first) const override;
  void log_density(MatrixView<const double> e, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override;
  void moments(std::span<double> mean, std::span<double> sd) const override { normal_.moments(mean, sd); }
  void add_pathwise(const Draws&, MatrixView<const double>, std::span<const double>, std::span<double>) const override;
  void add_score(MatrixView<const double>, std::span<const double>, std::span<double>) const override;

 private:
  MatrixView<const double> draws_;
  const Whitening& whitening_;
  std::optional<Quadratic> log_q_;
  GaussianFamily normal_;
};

}  // namespace hone
