#pragma once

#include "hone/assess/verdict.hpp"

namespace hone {

// Prints the verdict and the numbers behind it.
void print_judgement(const Judgement& judgement, const Findings& findings);

}  // namespace hone
