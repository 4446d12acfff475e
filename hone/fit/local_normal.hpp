#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/base/ranks.hpp"
#include "hone/fit/posterior_fit.hpp"
#include "hone/target/target.hpp"

namespace hone {

// Which matrices L a Gaussian q = N(m, L Lᵀ) may have.
enum class Shape { diagonal, dense, low_rank };

struct StartConfig {
  int starts = 8;
  std::uint32_t first = 0;  // the number of the first search: other numbers begin at other points
  double radius = 2;        // starts are uniform on [−radius, radius] in every coordinate
  Shape shape = Shape::dense;
  MatrixView<const double> init =
      {};                            // (D, k): the first k searches begin there, the others on cubes about these points
  const Whitening* about = nullptr;  // instead of the cube, starts are draws of this Gaussian, three times as wide
  MatrixView<const double> at = {};  // (D, starts): instead, these points, at which log p must be finite
};

// One search (L-BFGS) from each of the starts `which`; nothing for a start if the posterior was finite at no point that
// was tried.
std::vector<std::optional<LocalNormal>> search_from(const Target& target, const StartConfig& config,
                                                    const RandomSource& random, ItemRange which, Team& team);

// What all searches found, in the order of starts. Throws NowhereFinite if the first ones found nothing.
std::vector<LocalNormal> found_by(std::vector<std::optional<LocalNormal>> searches, const StartConfig& config);

// One search (L-BFGS) from every start at which the posterior is finite, in the order of starts. Throws NowhereFinite
// where there is no such start, InputError where a point of `init` is outside the support.
std::vector<LocalNormal> find_local_normals(const Target& target, const StartConfig& config, const RandomSource& random,
                                            Team& team);

// Shells about a Gaussian, from 1.5 to 12 times as wide as it, and how many values of log p each gets.
struct Shells {
  int count = 8, values = 512;
};

// At most one point per shell: the draw with the highest log p, if this exceeds the log density of a slightly wider
// Gaussian with this mass by three nats. Such a point may lie at a mode that no search has seen.
Matrix<double> surplus_points(const Target& target, const Whitening& gaussian, double log_mass, const Shells& shells,
                              const RandomSource& random, Team& team);

// The quadratic model of log p at the centre of coordinates e, from differences of gradients (2 D of them): its maximum
// and a factor of its covariance, packed. Nothing where it has no maximum.
struct Quadratic {
  std::vector<double> shift, root;
};
std::optional<Quadratic> quadratic_about(const Target& target, const Whitening& whitening, Team& team);

// The same approximation with the Hessian at its centre by differences of gradients (2 D of them), where that is
// positive definite and gives a better ELBO; otherwise unchanged. Where the whitening is not dense: independent
// coordinates about the end of the search, by the Hessian's diagonal.
void sharpen(const Target& target, const RandomSource& random, LocalNormal& local, Team& team);

}  // namespace hone
