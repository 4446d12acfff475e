#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/run/posterior_run.hpp"
#include "hone/engine/lead.hpp"
#include "hone/target/shared_posterior.hpp"

namespace hone {

// Rank 0's; null in a process that is alone.
extern Lead* lead;

// `hone fit`: on rank 0, this posterior as one whose evaluations and searches all ranks share; the others open the same
// model and data, and `config`'s threads are those of each rank. Null in a process that is alone. Throws Error that
// names rank and host if one of them cannot.
SharedPosterior* shared_by_ranks(const Posterior& posterior, const PosteriorRunConfig& config);

// What each rank of this job would work with, for `hone info`; empty in a process that is alone.
struct RankFacts {
  std::string host, level, device;  // device: of --engine cuda; empty: there is none
  int threads = 0;
};
extern std::vector<RankFacts> rank_facts;

// `hone reproduce`: ranks run cells now. When all are done, rank 0 runs the command once more; only then does it report
// missing cells and print tables.
extern bool ranks_run_cells;

// How much a command prints: everything, or only errors.
enum class Speech { usual, errors };

// Runs `command`, which returns the exit code. If mpirun or Slurm started several ranks, then rank 0 runs it and the
// others follow; or, where the work consists of cells, all run it. `name` is the subcommand; one that cannot share its
// work is refused. `speech`: what the user asked for.
int run_on_ranks(const std::string& name, Speech speech, const std::function<int(Speech)>& command);

}  // namespace hone
