#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hone/target/posterior.hpp"

namespace hone::test {

// The posteriors of examples/posteriors as hand-written C++ densities over Stan's unconstrained coordinates: positive
// values by their logarithm, bounded ones by a logit, ordered ones by logarithms of their differences. Names and order
// are those of the Stan programs next to the data.
struct KnownPosterior {
  std::string program;  // "eight_schools_centered": the Stan program is examples/posteriors/<program>.stan
  std::string folder;   // "eight_schools": examples/posteriors/<folder> holds data.json and reference.json
};
const std::vector<KnownPosterior>& known_posteriors();  // nine: eight schools twice

std::string known_file(const KnownPosterior& known, const std::string& name);  // path of "data.json", "reference.json"
std::string known_program(const KnownPosterior& known);                        // path of the Stan program

// The C++ density with the data of its folder.
std::unique_ptr<Posterior> make_known(const KnownPosterior& known);
std::unique_ptr<Posterior> make_known(const std::string& program);

// Reference moments by name in Stan's CSV form ("theta.1"); the errors are those of the reference's own draws.
struct ReferenceMoments {
  double mean, sd, mcse_mean, mean_sq, mcse_mean_sq;
};
std::map<std::string, ReferenceMoments> reference_moments(const KnownPosterior& known);

}  // namespace hone::test
