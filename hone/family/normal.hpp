#pragma once

#include <span>
#include <vector>

namespace hone {

/// The form of a Gaussian's covariance.
enum class Covariance { diagonal, full };

/// The formulas of one Gaussian N(μ, L Lᵀ) on parameters that a family owns: μ (D) and a scale, which is the D standard
/// deviations (diagonal) or the packed Cholesky factor L (full). u denotes the whitened point L⁻¹(z − μ).
/// Gradients are those of appendix 3, "Taking the gradients".
struct Normal {
  Covariance covariance;          ///< the form of Σ
  std::span<const double> mean;   ///< μ
  std::span<const double> scale;  ///< standard deviations, or packed L

  /// How many numbers a scale has.
  static std::size_t scale_size(Covariance covariance, int dimension);

  void colour(std::span<const double> u, std::span<double> z) const;  ///< z = μ + L u
  void whiten(std::span<const double> z, std::span<double> u) const;  ///< u = L⁻¹ (z − μ)
  void precondition(std::span<const double> u, std::span<double> v) const;  ///< v = L⁻ᵀ u = Σ⁻¹ (z − μ); v may be u
  double log_normalizer() const;                                            ///< D/2 log 2π + ½ log |Σ|
  double variance(std::size_t dimension) const;                             ///< Σ_ii
};

/// The gradient's slices of one Gaussian.
struct NormalGradient {
  Covariance covariance;    ///< the form of Σ
  std::span<double> mean;   ///< gradient with respect to μ
  std::span<double> scale;  ///< gradient with respect to the scale

  /// c dzᵀ ∇(μ + L ε)
  void add_pathwise(double c, std::span<const double> dz, std::span<const double> noise) const;
  /// c ∇ log N(z), from u and v = L⁻ᵀ u
  void add_score(double c, const Normal& normal, std::span<const double> u, std::span<const double> v) const;
  /// c ∇ ½ log |Σ|
  void add_log_normalizer(double c, const Normal& normal) const;
};

/// Floors standard deviations, or the diagonal of L, at scale_floor.
void floor_scale(Covariance covariance, std::span<double> scale);

/// Appends the places of standard deviations, or of the diagonal of L, in a θ whose scale begins at `offset`.
void append_positive(Covariance covariance, int dimension, std::size_t offset, std::vector<std::size_t>& places);

/// A scale of one standard deviation in every direction.
void set_isotropic(Covariance covariance, double sd, std::span<double> scale);

}  // namespace hone
