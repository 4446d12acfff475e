#pragma once

#include <vector>

#include "hone/assess/refined_draws.hpp"

namespace hone {

// Which of the refined states are written, and in what order. A fit runs many short chains. Other programs want a few
// long ones, so the short ones are joined to `chains` long ones, all of one length. Short chains
// with the same origin are in the same long chain, so that R-hat of the long ones shows where origins still matter:
// each has the short chains of one super-chain, after as many that began at draws of q. Where q has several modes and
// chains do not travel between them, a long chain has short ones of the same mode.
struct KeptDraws {
  std::vector<int> cols;         // of the refined states, long chain after long chain
  std::vector<int> short_chain;  // of each of them: the chain of the fit that it is from
  int chains = 1;                // long ones
  int short_chains = 1;          // short ones that are kept
};

// At most `most` states, of as many chains as leave each at least four of them.
KeptDraws kept_draws(const RefinedDraws& refined, int most);

}  // namespace hone
