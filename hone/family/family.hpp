#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/base/want.hpp"
#include "hone/family/normal.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// What a parameter is: learning rates differ by role.
enum class Role { location, scale, weight };

/// A named range of a family's parameters.
struct Slice {
  std::string name;    ///< its name
  Role role;           ///< its role
  std::size_t offset;  ///< where it begins in θ
  std::size_t size;    ///< how many parameters it has
};

/// The smallest standard deviation (or Cholesky diagonal) that a family keeps.
inline constexpr double scale_floor = 1e-5;

/// A weighted set of draws z0 ~ q, stratified over the components of q: n of every component, component after
/// component, each of weight w_k / n, so that Σ weight · h(z) estimates E_q[h].
struct Draws {
  /// Memory for per_component draws of each component.
  Draws(int dimension, int components, int per_component);
  /// K n
  int count() const { return z.cols(); }
  /// The component that a draw is from.
  int component_of(int draw) const { return draw / per_component; }

  Matrix<double> z;  ///< (D, K n)
  /// (D, K n), does not depend on θ: z = h_θ(noise); of a Gaussian standard normal. An amortized family may have more
  /// rows, or fewer.
  Matrix<double> noise;
  std::vector<double> weight;  ///< (K n), sums to one
  int components;              ///< K
  int per_component;           ///< n
};

/// Coordinates e with z = mean + S e, S diagonal (its D elements) or lower triangular (packed).
struct LocationScale {
  Covariance covariance;      ///< the form of S
  std::vector<double> mean;   ///< (D)
  std::vector<double> scale;  ///< the elements of S
};

/// An explicit q_θ(z): draws, log density and gradients. It never sees a target. θ is one flat vector with named
/// slices. The add_* functions accumulate into a θ-gradient of parameters().size() numbers; their coefficients
/// multiply each draw's contribution (weights of the draws are not applied for the caller).
class Family {
 public:
  virtual ~Family() = default;

  /// D
  int dimension() const { return dimension_; }
  /// K; 1 unless q is a mixture.
  virtual int components() const { return 1; }
  /// The named ranges of θ.
  std::span<const Slice> slices() const { return slices_; }
  /// θ
  std::span<double> parameters() { return parameters_; }
  /// θ
  std::span<const double> parameters() const { return parameters_; }

  /// Fills draws, whose chain c takes its noise from stream {draw, iteration, datum = first_datum + c}.
  virtual void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
                    std::uint32_t first_datum = 0) const = 0;

  /// log q and ∇_z log q of the whole q, column by column, as Target::evaluate does.
  virtual void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                           MatrixView<double> gradient) const = 0;

  /// The same at draws of this q as it is; a Gaussian knows them whitened.
  virtual void log_density_at(const Draws& draws, Want want, std::span<double> value,
                              MatrixView<double> gradient) const {
    log_density(draws.z, want, value, gradient);
  }

  /// Σ_i c_i dz_iᵀ ∇_θ h_θ(noise_i): the reparameterization gradient of eq. gradient_term1
  virtual void add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                            std::span<double> gradient) const = 0;

  /// Σ_i c_i ∇_θ log q_θ(z_i) of the whole q at any points
  virtual void add_score(MatrixView<const double> z, std::span<const double> coefficient,
                         std::span<double> gradient) const = 0;

  /// Σ_i c_i ∇_θ log(w_k q_k(z_i)), k the component that made draw i: the score at z0 stratified as in appendix 3.
  /// Equal to add_score at the same points in expectation, and so by default; a family of several components overrides
  /// it.
  virtual void add_draw_score(const Draws& draws, std::span<const double> coefficient,
                              std::span<double> gradient) const {
    add_score(draws.z, coefficient, gradient);
  }

  /// Σ_i c_i ∇_θ log w_k: what a reparameterized draw cannot carry (eq2:mixture_grad_elbo_wk). Nothing for one
  /// component.
  virtual void add_component_score(const Draws& draws, std::span<const double> coefficient,
                                   std::span<double> gradient) const;

  /// Where −log q = ½ (quadratic form) + log N_θ with log N_θ constant in z (a Gaussian): its expectation is known,
  /// D/2 + log N_θ. The two functions below may then be called; N_θ is that of the q which draw i comes from.
  virtual bool has_analytic_entropy() const { return false; }
  /// log N_θ of the q that a draw comes from.
  virtual double log_normalizer(int draw) const;
  /// Σ_i c_i ∇_θ log N_θ
  virtual void add_entropy_gradient(std::span<const double> coefficient, std::span<double> gradient) const;

  /// Brings θ back into its domain after a gradient step (standard deviations are floored at scale_floor). Nothing to
  /// do where every θ is in it.
  virtual void project() {}

  /// Which parameters are positive by their meaning: standard deviations, or diagonals of Cholesky factors. None
  /// where the parameters are not the family's own, but an encoder's outputs.
  virtual std::vector<std::size_t> positive_parameters() const { return {}; }

  /// Means and standard deviations of the whole q, one per dimension.
  virtual void moments(std::span<double> mean, std::span<double> sd) const = 0;

  /// The logarithms of the components' weights. A family with several components overrides this and the next function.
  virtual void log_weights(std::span<double> out) const;
  /// Sets the logarithms of the components' weights, up to a constant.
  virtual void set_log_weights(std::span<const double> log_weight);

  /// Component k, where it is a Gaussian; its spans are parts of θ.
  virtual std::optional<Normal> component(int) const { return std::nullopt; }

  /// Gives up location and scale: returns coordinates e for z and changes θ so that q over e is what q over z was. A
  /// Gaussian becomes standard normal, a mixture is scaled by the covariance within its components. None, and θ stays,
  /// where the family cannot: a fit then keeps the coordinates that it began with.
  virtual std::optional<LocationScale> standardize() { return std::nullopt; }

 protected:
  /// A family without parameters yet.
  explicit Family(int dimension);
  /// Appends `size` parameters, zeros at first.
  void add_slice(std::string name, Role role, std::size_t size);

 private:
  int dimension_;
  std::vector<Slice> slices_;
  std::vector<double> parameters_;
};

/// `count` independent draws from q, one per column. For a mixture, each draw is from a component chosen at random,
/// whose number is written to `component` unless that is null.
Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component = nullptr);

}  // namespace hone
