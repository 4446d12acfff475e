#pragma once

#include <functional>
#include <vector>

namespace hone::test {

// One-dimensional functions as the oracle sees them: written out in the tests, apart from the library's own.
using Function = std::function<double(double)>;

struct Density {  // log p and its derivative
  Function log_p;
  Function slope;
};

enum class Move1d { hmc, mala, random_walk };

// A Markov kernel on the line as an operator on functions over a fine grid:
//   (K g)(z) = ∫ N(p) [a(z, p) g(z') + (1 − a(z, p)) g(z)] dp,
// p the momentum (hmc) or the noise (mala, random walk), z' the proposal, a its acceptance probability. The integral is
// a trapezoidal sum; g(z') is interpolated by cubics. Nothing here is taken from the library.
class KernelOracle {
 public:
  KernelOracle(const Density& target, Move1d move, double step_size, int leapfrog);

  const std::vector<double>& grid() const { return grid_; }

  // Kᵗ g for a function, or grid values
  std::vector<double> apply(std::vector<double> g, int t) const;
  // The densities q⁽ᵗ⁾ (eq. def_improved_q) at ascending times t from the density q, all on the grid, by carrying mass:
  // that of q(z) N(p) dz dp goes to z' with the acceptance probability and otherwise stays at z. It does not use the
  // operator above.
  std::vector<std::vector<double>> propagate(const std::vector<double>& density, const std::vector<int>& times) const;

  double integrate(const std::vector<double>& g) const;  // ∫ g dz over the grid
  std::vector<double> on_grid(const Function& g) const;

 private:
  struct Proposal {
    double point;
    double accept;
  };
  Proposal propose(double z, double p) const;
  void add_proposal(std::size_t row, double weight, const Proposal& proposal);

  Density target_;
  Move1d move_;
  double step_size_;
  int leapfrog_;

  std::vector<double> grid_;
  double spacing_;
  std::vector<double> noise_mass_;  // N(p) dp
  std::vector<double> operator_;    // (n, n), row by row
};

// The exact E_q[f], E_q(t)[f] for q given by log q: f = log p − log q.
struct OracleValues {
  double elbo = 0;
  double refined = 0;
  double vcd() const { return refined - elbo; }                            // eq. new_divergence_rearranged
  double alpha_vcd(double alpha) const { return alpha * refined - elbo; }  // appendix 2, up to (1 − α) log p(x)
};
OracleValues oracle_values(const KernelOracle& kernel, const Density& target, const Function& log_q, int t);

}  // namespace hone::test
