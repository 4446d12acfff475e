#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/run/fit_groups.hpp"
#include "hone/assess/refined_draws.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Draws on the natural scale, as written to files.
struct DrawTable {
  std::vector<std::string> names;     // in Stan's CSV form: "mu", "theta.1", "K.2.3"
  Matrix<double> values;              // (names, S): one draw per column
  std::vector<double> log_p, log_q;   // (S): normalised log densities in the coordinates of the fit
  std::vector<StateMove> moves = {};  // (S): the last step of the chain to each draw; none: independent draws
  std::vector<int> short_chain = {};  // (S): the chain of the fit that each draw is from; none: not known
};

// A variable made of names in Stan's CSV form: "K.1.1", "K.2.1", … are one variable of two dimensions.
struct NamedVariable {
  std::string name;
  std::vector<std::size_t> dims;     // empty for a number
  std::vector<std::size_t> entries;  // index of each element's name, the last index fastest
};

// Combines names into variables, in order of first appearance. If the indices do not fill a rectangle, each name stays
// a separate variable.
std::vector<NamedVariable> group_names(std::span<const std::string> names);

// Stan CSV: comments as CmdStan writes them, so that its readers open the file, then lp__,log_p__,log_q__, with moves
// also accept_stat__,divergent__,energy__, with short_chain that too, and the names. lp__ repeats log_p__ because
// readers expect it. `comments` are additional lines (without '#'). `stan_version` is that of the model; readers want
// three numbers, so an unknown one is 0.0.0. Throws Error.
void write_stan_csv(const std::filesystem::path& path, const DrawTable& draws,
                    const std::vector<std::string>& comments = {}, const std::string& stan_version = {});

// A variable of the data, for a NetCDF file.
struct DataArray {
  std::string name;
  std::vector<std::size_t> dims;
  std::vector<double> values;  // the last index fastest
};
// The numbers and rectangular arrays of numbers in a JSON file; nothing if it is not an object. Throws InputError if it
// cannot be read.
std::vector<DataArray> read_data_arrays(const std::filesystem::path& path);

struct InferenceData {
  const DrawTable& refined;                       // group posterior, its log densities and moves in sample_stats
  const DrawTable& q;                             // groups q and q_stats: draws of q itself
  int chains = 1;                                 // of refined: the first S / chains columns are the first chain
  std::vector<DataArray> data;                    // groups observed_data and constant_data, if there is any
  FitGroups groups;                               // which variables are not in posterior, or observed
  std::map<std::string, std::string> attributes;  // of the file and of group posterior; q is one chain
};

// One NetCDF-4 file in the layout of ArviZ's InferenceData. Throws InputError if the draws do not divide into the
// chains, and Error if the file cannot be written; then an existing file stays.
void write_inference_data(const std::filesystem::path& path, const InferenceData& data);

// Initial points, metric and step size for CmdStan's chains.
struct WarmStart {
  std::vector<std::string> names;  // of the parameters themselves
  Matrix<double> inits;            // (names, chains)
  Matrix<double> inverse_metric;   // (D, D) for CmdStan's dense_e, (D, 1) for diag_e: the covariance of the coordinates
  double step_size = 0;            // of a leapfrog step under this metric; 0: left to CmdStan
};

// Writes inits_1.json, …, metric.json and arguments.txt (the arguments for CmdStan) into the folder, and creates the
// folder if needed. Throws Error.
void write_warm_start(const std::filesystem::path& folder, const WarmStart& start);

}  // namespace hone
