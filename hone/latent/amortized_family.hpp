#pragma once

#include "hone/base/parallel.hpp"
#include "hone/family/family.hpp"
#include "hone/family/normal.hpp"

namespace hone {

// The q of a minibatch: one diagonal Gaussian per datum. An encoder writes the means and standard deviations into
// parameters(). Column c of a batch of points belongs to datum c, so every batch has count() columns. Every draw has
// weight 1: values and gradients are sums over the minibatch, not means. If there is a team, its threads share the
// data; it must outlive the family and its copies.
class AmortizedFamily final : public Family {
 public:
  AmortizedFamily(int dimension, int count, Team* team = nullptr);

  // Draws, densities and gradients are computed for the data [begin, end) only; those of other data stay unchanged.
  void restrict_to(int begin, int end);

  int count() const { return count_; }
  MatrixView<double> mean() { return split(parameters()).mean; }  // (D, n)
  MatrixView<double> sd() { return split(parameters()).sd; }      // (D, n)

  // The parameters, or a gradient, as means and standard deviations, (D, n) each.
  struct Halves {
    MatrixView<double> mean, sd;
  };
  Halves split(std::span<double> all) const;

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
  bool has_analytic_entropy() const override { return true; }
  double log_normalizer(int draw) const override { return normal(draw).log_normalizer(); }
  void add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const override;
  void project() override {}  // an encoder's standard deviations are positive
  void moments(std::span<double> mean,
               std::span<double> sd) const override;  // of the mixture of all data, equally weighted

 private:
  template <class Do>
  void for_data(Do&& work) const;  // work(datum)
  Normal normal(int datum) const;
  NormalGradient gradient_of(int datum, std::span<double> gradient) const;

  int count_;
  int begin_ = 0, end_;
  Team* team_;
};

}  // namespace hone
