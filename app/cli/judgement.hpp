#pragma once

#include "hone/assess/verdict.hpp"

namespace hone {

// The verdict in words, with the figures that it rests on.
void print_judgement(const Judgement& judgement, const Findings& findings);

}  // namespace hone
