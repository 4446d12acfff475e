#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/second_opinion.hpp"

namespace hone {

// Draws in files that other tools write: Stan's CSV, or a plain CSV with a line of names ("theta.1", "theta[1]"). Lines
// that begin with # are comments. Warm-up that a Stan CSV says it holds, and the mean that CmdStan puts first in a file
// of its variational method, are left out. Several files are several chains. log_q comes from a column log_q__ (hone,
// CmdStan's laplace), log_g__ (its variational method) or lp_approx__ (its pathfinder, where it did not resample).
// Throws InputError that names file and line.
GivenDraws read_csv_draws(const std::vector<std::filesystem::path>& files);
GivenDraws csv_draws_in(std::string_view text, const std::string& name);  // the same for the content of one file

// The group `posterior` of a NetCDF-4 file in ArviZ's layout, variables (chain, draw, …). Apart because it alone needs
// NetCDF. Throws InputError.
GivenDraws read_inference_draws(const std::filesystem::path& file);

// "theta[1,2]" as "theta.1.2"; other names stay what they are.
std::string stan_name(std::string name);

}  // namespace hone
