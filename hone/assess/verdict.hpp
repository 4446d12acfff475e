#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hone/assess/q_checks.hpp"
#include "hone/assess/refined_draws.hpp"

namespace hone {

enum class Verdict { use_q, use_refined, trust_neither };

std::string name_of(Verdict verdict);  // "use-q", …

// What a user accepts of q, beside the refined draws.
struct Tolerances {
  double mean = 0.1;  // shift of a mean, in sds
  double sd = 0.07;   // relative error of an sd
  double vcd = 0.01;  // value of the VCD a dimension
};

// The largest disagreement of q and the refined draws on the natural scale: of parameters, in refined sds.
struct NaturalChecks {
  double shift = 0, shift_se = 0;
  std::string shift_name;
  double sd_ratio = 1, sd_ratio_se = 0;
  std::string sd_name;
};

// All that the verdict rests on.
struct Findings {
  int dimension = 0;
  int starts = 0;    // searches that gave a start
  int left_out = 0;  // of them: whose approximations are far worse than q, by their ELBO
  int modes = 1;
  bool fit_converged = true;
  std::vector<std::string> coordinate_names;  // unconstrained z
  std::vector<std::string> chain_names;       // of the coordinates that the chains moved in
  ChainChecks chains;
  bool capped = false;
  int steps = 0;
  std::vector<PairsAt> at;
  QChecks q;
  NaturalChecks natural;
};

struct Judgement {
  Verdict verdict;
  std::vector<std::string> reasons;  // why; in words
  std::vector<std::string> notes;    // what else is worth knowing
};

Judgement judge(const Findings& findings, const Tolerances& tolerances);

}  // namespace hone
