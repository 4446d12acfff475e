#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "hone/base/statistics.hpp"

namespace hone {

class DataSet;
struct TrainRunConfig;

// What is wrong with a training, from which iteration on.
struct Trouble {
  enum class Kind {
    q_lost,     // the VCD is many times the size of the ELBO: q does not follow its chains
    elbo_fell,  // far below its best
    vcd_grew    // far above its smallest value, and above the size of the ELBO
  };
  Kind kind;
  std::uint32_t since;            // the last iteration of the first bad report interval
  int intervals;                  // bad ones in a row; a long row goes on until the ELBO has recovered
  double elbo, best, vcd, least;  // now, and the best ELBO and the least VCD so far

  std::string text() const;  // what happened, with numbers
};

// What may help, for this configuration. `too_wide`: that of the training data.
std::string advice(const TrainRunConfig& config, const std::string& too_wide = "");

// What should be divided by what, after "divide", if the likelihood subtracts the mean of every value of a datum and
// some of these are much wider than it expects; otherwise empty.
std::string too_wide(const TrainRunConfig& config, const DataSet& train);

// Watches the rows of metrics.csv.
class TrainHealth {
 public:
  void add(std::uint32_t iteration, double elbo, const Estimate& vcd);  // vcd: NaN if nothing is refined
  void read(const std::filesystem::path& metrics);                      // the rows of a run that continues

  std::optional<Trouble> trouble() const { return trouble_; }  // as of the last row
  bool worth_a_word() const;  // whether the trouble has just lasted long enough to be reported

 private:
  std::optional<double> best_, least_;
  std::optional<Trouble> trouble_;
};

// Whether the refined draws are so far from q that it hardly follows them. In a good training the VCD is some dozens of
// nats, smaller than the size of the ELBO or a few times as large; if standard deviations of q collapsed, it is many
// times larger (docs/reproduction.md). Two standard errors are subtracted from the VCD: a few wild chains make it large
// and uncertain.
bool q_is_lost(double elbo, const Estimate& vcd);

}  // namespace hone
