#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/calibration/cases.hpp"

namespace hone::calibration {

// How far draws are from the answer, at their worst over all values that have one. NaN: there is no answer.
struct Distance {
  double centre = 0;  // in spreads
  double spread = 1;  // the ratio of spreads farthest from 1
};

// More than this is too far for draws that are called fit for use.
inline constexpr Distance most_off{.centre = 0.2, .spread = 1.2};
// A stricter limit, of which the verdict promises nothing.
inline constexpr Distance strictly_off{.centre = 0.1, .spread = 1.1};
bool off(const Distance& error, const Distance& limit = most_off);

// hone's checks of the refined draws, each as its value over its limit: above 1 it refuses them.
inline constexpr std::array check_names = {"rhat",      "spread",     "drift",   "memory", "tail",     "per_chain",
                                           "effective", "acceptance", "diverge", "stuck",  "sd_error", "modes"};
using Scores = std::array<double, check_names.size()>;

// One line of the CSV.
struct Row {
  std::string posterior;
  std::uint64_t seed = 1;
  std::string verdict;  // hone's words, or "refused" where the fit ends with an error
  std::int64_t gradients = 0;
  double seconds = 0;   // of the processor
  Distance q, refined;  // of q's draws, of the refined draws
  double k_hat = 0, nested_rhat = 0;
  double plain_rhat = 0;  // split R-hat over all chains
  int steps = 0;          // of the chains
  bool capped = false;    // they were to go on, but the budget ended
  Scores scores{};

  bool says_use() const { return verdict == "use-q" || verdict == "use-refined"; }
  const Distance& recommended() const { return verdict == "use-q" ? q : refined; }
};

std::string header();
std::string line_of(const Row& row);
// Throws InputError that names path and number.
Row row_of(const std::string& line, const std::string& path, int number);

struct Settings {
  std::int64_t gradients = 0;  // budget; 0: the default
  int threads = 1;             // of a fit; the same results on any number
};

// Fits one posterior with one seed.
Row run(const Case& one, const Truth& truth, std::uint64_t seed, const Settings& settings);

// The report in markdown.
std::string summary_of(const std::vector<Case>& cases, const std::vector<Row>& rows);

}  // namespace hone::calibration
