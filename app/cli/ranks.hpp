#pragma once

#include <functional>

#include "hone/engine/lead.hpp"

namespace hone {

// Rank 0's; null in a process that is alone.
extern Lead* lead;

// Runs `command` on rank 0 while the other ranks follow, if mpirun or Slurm started several; otherwise just runs it.
// Returns the exit code. `name` is the subcommand; one that cannot share its work is refused.
int run_on_ranks(const std::string& name, const std::function<int()>& command);

}  // namespace hone
