#pragma once

#include <memory>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/family/family.hpp"
#include "hone/latent/amortized_family.hpp"

namespace hone {

// The q of a minibatch as objectives see it: an amortized family with the parameters of every datum, which an encoder
// writes into location() and scale(). Column c of a batch of points belongs to datum c, so every batch has count()
// columns. Every draw has weight 1: values and gradients are sums over the minibatch, not means. If there is a team,
// its threads share the data; it must outlive the family and its copies.
class MinibatchFamily final : public Family {
 public:
  // `family` must not be null; its shape is that of `dimension`.
  MinibatchFamily(std::shared_ptr<const AmortizedFamily> family, int dimension, int count, Team* team = nullptr);

  // Draws, densities and gradients are computed for the data [begin, end) only; those of other data stay unchanged.
  void restrict_to(int begin, int end);

  int count() const { return count_; }
  MatrixView<double> location() { return split(parameters()).location; }
  MatrixView<double> scale() { return split(parameters()).scale; }
  // The parameters, or a gradient, as locations and scales.
  AmortizedGradient split(std::span<double> all) const;

  // Call it when the parameters have changed: finds log N of the data, for families with an analytic entropy.
  void settle();
  std::span<double> log_normalizers() { return log_normalizers_; }

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
  bool has_analytic_entropy() const override { return family_->has_analytic_entropy(); }
  double log_normalizer(int draw) const override { return log_normalizers_[static_cast<std::size_t>(draw)]; }
  void add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const override;
  void project() override {}  // an encoder's outputs are in the domain
  void moments(std::span<double> mean,
               std::span<double> sd) const override;  // of the mixture of all data, equally weighted
  void moments_per_datum(MatrixView<double> mean, MatrixView<double> sd) const;  // (D, n) each

 private:
  template <class Do>
  void for_shares(Do&& work) const;  // work(q of the data [begin, end), begin, end)
  AmortizedParameters columns(int begin, int end) const;

  std::shared_ptr<const AmortizedFamily> family_;
  AmortizedShape shape_;
  int count_;
  int begin_ = 0, end_;
  Team* team_;
  std::vector<double> log_normalizers_;
};

}  // namespace hone
