#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/target/posterior.hpp"

// Posteriors with known answers, by which hone's verdicts are judged.
namespace hone::calibration {

// What centre and spread of a value are: mean and sd; or, where tails make these useless, the median and the distance
// of the 5 % and 95 % quantiles in units of a normal's (3.29 sd).
enum class By { moments, quantiles };
inline constexpr double quantile_width = 3.2897072539029453;

// The known answer for one natural-scale value.
struct Known {
  std::string name;
  By by = By::moments;
  double centre = 0, spread = 1;
  double error = 0;  // standard error of the centre, in spreads; 0: exact
};
using Truth = std::vector<Known>;
using Maker = std::function<std::unique_ptr<Posterior>()>;

// Whether an answer takes long to find and is therefore kept in references.csv.
enum class Kept { no, yes };

struct Case {
  std::string name;
  std::string kind;
  Maker make;
  std::string how;               // how the answer is found
  std::function<Truth()> truth;  // finds it; empty: there is none, and no draws may be called fit for use
  Kept kept = Kept::no;
};

// One function per kind of posterior.
std::vector<Case> gaussians();
std::vector<Case> shapes();
std::vector<Case> heavy_tails();
std::vector<Case> mixtures();
std::vector<Case> hierarchical();
std::vector<Case> series();
std::vector<Case> regressions();
std::vector<Case> item_response();
std::vector<Case> constrained();
std::vector<Case> curves();
std::vector<Case> improper();
std::vector<Case> examples();  // those of examples/posteriors

std::vector<Case> all_cases();

// Simulated data: the same numbers on every machine.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed) {}
  double normal();
  double uniform();
  std::vector<double> normals(std::size_t count);
  double bernoulli(double probability) { return uniform() < probability ? 1 : 0; }
  double poisson(double mean);

 private:
  PhiloxSource random_;
  std::uint32_t at_ = 0;
};

// Ways to an answer. Each takes the posterior from its maker; values whose names are in `by_quantiles` (up to the first
// dot) are given by quantiles.

// All values by the same formula for mean and sd.
Truth closed_form(const std::vector<std::string>& names, const std::function<void(std::size_t, Known&)>& formula);

// A product trapezoidal rule over at most four unconstrained coordinates, `points` along each.
Truth by_grid(const Maker& make, int points);

// A long run of the sampler in nuts.hpp.
struct LongRun {
  int draws = 6000;  // per chain, of eight
  double acceptance = 0.9;
  std::set<std::string> by_quantiles = {};
};
Truth by_nuts(const Maker& make, const LongRun& run = {});

// The answers kept in a file, in the order of the cases; empty where it has none, or is not there. Throws InputError if
// it is not as write_references leaves it.
std::vector<Truth> kept_references(const std::string& path, const std::vector<Case>& cases);
// The answers to all cases: the kept ones, and the others found anew. Throws InputError if one is missing.
std::vector<Truth> read_references(const std::string& path, const std::vector<Case>& cases);
void write_references(const std::string& path, const std::vector<Case>& cases, const std::vector<Truth>& truths);

}  // namespace hone::calibration
