#include <cmath>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/latent/amortized_family.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// One datum's N(μ, S² + V Vᵀ) with S = diag(σ), by the factor R of M = I + Vᵀ S⁻² V = R Rᵀ:
//   Σ⁻¹ (z − μ) = S⁻² (z − μ − V b)  with b = M⁻¹ Vᵀ S⁻² (z − μ)
//   (z − μ)ᵀ Σ⁻¹ (z − μ) = |S⁻¹ (z − μ − V b)|² + |b|², a sum without cancellation
//   |Σ| = |S|² |M|
class LowRank {
 public:
  // Takes a datum's parameters.
  void set(std::span<const double> mean, std::span<const double> scale, int rank) {
    const std::size_t dimension = mean.size();
    mean_ = mean;
    sd_ = scale.first(dimension);
    factors_ = {scale.data() + dimension, static_cast<int>(dimension), rank};
    precision_.resize(dimension);
    for (std::size_t i = 0; i < dimension; ++i) precision_[i] = 1 / square(sd_[i]);
    root_.resize(packed_size(static_cast<std::size_t>(rank)));
    b_.resize(rank);
    row_.resize(rank);
    v_.resize(dimension);
    factorize();
  }

  double log_normalizer() const {
    double sum = 0.5 * static_cast<double>(sd_.size()) * log_two_pi;
    for (const double s : sd_) sum += std::log(s);
    for (std::size_t j = 0; j < b_.size(); ++j) sum += std::log(root_[packed(j, j)]);
    return sum;
  }

  // Finds b and v = Σ⁻¹ (z − μ), and returns the quadratic form.
  double solve(std::span<const double> z) {
    for (std::size_t j = 0; j < b_.size(); ++j) {
      b_[j] = 0;
      for (std::size_t i = 0; i < z.size(); ++i) b_[j] += factor(j)[i] * (z[i] - mean_[i]) * precision_[i];
    }
    solve_lower(root_, b_, b_);
    solve_lower_transposed(root_, b_, b_);
    double quadratic = 0;
    for (const double x : b_) quadratic += square(x);
    for (std::size_t i = 0; i < z.size(); ++i) {
      double rest = z[i] - mean_[i];
      for (std::size_t j = 0; j < b_.size(); ++j) rest -= factor(j)[i] * b_[j];
      v_[i] = rest * precision_[i];
      quadratic += rest * v_[i];
    }
    return quadratic;
  }
  std::span<const double> v() const { return v_; }

  // c ∇ log N(z) of the z that was solved: ∇_μ = v, ∇_σ = σ v² − …, ∇_V = v bᵀ − …, since Vᵀ v = b; … is the gradient
  // of the normalizer.
  void add_score(double c, std::span<double> mean, std::span<double> scale) {
    const std::size_t dimension = v_.size();
    for (std::size_t i = 0; i < dimension; ++i) {
      mean[i] += c * v_[i];
      scale[i] += c * sd_[i] * square(v_[i]);
    }
    for (std::size_t j = 0; j < b_.size(); ++j)
      for (std::size_t i = 0; i < dimension; ++i) scale[(j + 1) * dimension + i] += c * v_[i] * b_[j];
    add_log_normalizer(-c, scale);
  }

  // c ∇ ½ log |Σ|: ∇_V = Σ⁻¹ V = S⁻² V M⁻¹, ∇_σ = σ diag(Σ⁻¹) = (1 − |R⁻¹ V_iᵀ|² / σ²) / σ
  void add_log_normalizer(double c, std::span<double> scale) {
    const std::size_t dimension = sd_.size();
    for (std::size_t i = 0; i < dimension; ++i) {
      for (std::size_t j = 0; j < row_.size(); ++j) row_[j] = factor(j)[i];
      solve_lower(root_, row_, row_);
      double share = 0;
      for (const double x : row_) share += square(x) * precision_[i];
      scale[i] += c * (1 - share) / sd_[i];
      solve_lower_transposed(root_, row_, row_);
      for (std::size_t j = 0; j < row_.size(); ++j) scale[(j + 1) * dimension + i] += c * row_[j] * precision_[i];
    }
  }

 private:
  std::span<const double> factor(std::size_t j) const { return factors_.column(static_cast<int>(j)); }

  // M is at least the identity, so its factor exists; what is not finite stays so.
  void factorize() {
    for (std::size_t j = 0; j < b_.size(); ++j)
      for (std::size_t k = 0; k <= j; ++k) {
        double sum = j == k ? 1 : 0;
        for (std::size_t i = 0; i < precision_.size(); ++i) sum += factor(j)[i] * factor(k)[i] * precision_[i];
        for (std::size_t l = 0; l < k; ++l) sum -= root_[packed(j, l)] * root_[packed(k, l)];
        root_[packed(j, k)] = j == k ? std::sqrt(sum) : sum / root_[packed(k, k)];
      }
  }

  std::span<const double> mean_, sd_;
  MatrixView<const double> factors_;  // V (D, R)
  std::vector<double> precision_;     // 1 / σ²
  std::vector<double> root_;          // R, packed
  std::vector<double> b_, row_, v_;
};

// work(c, q of datum c)
template <class Do>
void for_each(const AmortizedParameters& q, int rank, Do work) {
  thread_local LowRank normal;
  for (int c = 0; c < q.count(); ++c) {
    normal.set(q.location.column(c), q.scale.column(c), rank);
    work(c, normal);
  }
}

}  // namespace

LowRankGaussian::LowRankGaussian(int rank) : rank_(rank) {
  if (rank < 1) throw KeyError("rank", "a low-rank family needs at least one factor");
}

AmortizedShape LowRankGaussian::shape(int latent) const {
  if (rank_ > latent)
    throw KeyError("rank", "must be at most latent, which is " + std::to_string(latent) + ": more factors add nothing");
  return {.location = latent, .scale = latent * (1 + rank_), .positive = latent, .noise = latent + rank_};
}

void LowRankGaussian::draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const {
  const int dimension = z.rows();
  for (int c = 0; c < q.count(); ++c)
    for (int i = 0; i < dimension; ++i) {
      z(i, c) = q.location(i, c) + q.scale(i, c) * noise(i, c);
      for (int j = 0; j < rank_; ++j) z(i, c) += q.scale((j + 1) * dimension + i, c) * noise(dimension + j, c);
    }
}

void LowRankGaussian::log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want,
                                  std::span<double> value, MatrixView<double> gradient) const {
  for_each(q, rank_, [&](int c, LowRank& normal) {
    const double quadratic = normal.solve(z.column(c));
    if (wants_value(want)) value[c] = -0.5 * quadratic - normal.log_normalizer();
    if (wants_gradient(want))
      for (int i = 0; i < z.rows(); ++i) gradient(i, c) = -normal.v()[static_cast<std::size_t>(i)];
  });
}

void LowRankGaussian::add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise,
                                   MatrixView<const double> dz, std::span<const double> coefficient,
                                   const AmortizedGradient& gradient) const {
  const int dimension = dz.rows();
  for (int c = 0; c < q.count(); ++c)
    for (int i = 0; i < dimension; ++i) {
      const double slope = coefficient[c] * dz(i, c);
      gradient.location(i, c) += slope;
      gradient.scale(i, c) += slope * noise(i, c);
      for (int j = 0; j < rank_; ++j) gradient.scale((j + 1) * dimension + i, c) += slope * noise(dimension + j, c);
    }
}

void LowRankGaussian::add_score(const AmortizedParameters& q, MatrixView<const double> z,
                                std::span<const double> coefficient, const AmortizedGradient& gradient) const {
  for_each(q, rank_, [&](int c, LowRank& normal) {
    normal.solve(z.column(c));
    normal.add_score(coefficient[c], gradient.location.column(c), gradient.scale.column(c));
  });
}

void LowRankGaussian::log_normalizer(const AmortizedParameters& q, std::span<double> out) const {
  for_each(q, rank_, [&](int c, const LowRank& normal) { out[c] = normal.log_normalizer(); });
}

void LowRankGaussian::add_entropy_gradient(const AmortizedParameters& q, std::span<const double> coefficient,
                                           const AmortizedGradient& gradient) const {
  for_each(q, rank_,
           [&](int c, LowRank& normal) { normal.add_log_normalizer(coefficient[c], gradient.scale.column(c)); });
}

void LowRankGaussian::moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const {
  const int dimension = mean.rows();
  for (int c = 0; c < q.count(); ++c)
    for (int i = 0; i < dimension; ++i) {
      double variance = 0;
      for (int j = 0; j <= rank_; ++j) variance += square(q.scale(j * dimension + i, c));
      mean(i, c) = q.location(i, c);
      sd(i, c) = std::sqrt(variance);
    }
}

}  // namespace hone
