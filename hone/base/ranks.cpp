#include "hone/base/ranks.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "hone/base/error.hpp"

namespace hone {
namespace {

int bound(int items, int rank, int size) { return static_cast<int>(static_cast<std::int64_t>(items) * rank / size); }

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

// The processes of this job, by what its launcher writes into the environment: Open MPI; MPICH, Intel MPI and
// srun --mpi=pmi2. srun --mpi=pmix gives the number of tasks of the step separately.
int started_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int count = number_in(variable); count > 0) return count;
  return std::getenv("PMIX_RANK") ? std::max(1, number_in("SLURM_STEP_NUM_TASKS")) : 1;
}

}  // namespace

ItemRange share_of(int items, const Ranks* ranks) {
  if (!ranks) return {0, items};
  return {bound(items, ranks->rank(), ranks->size()), bound(items, ranks->rank() + 1, ranks->size())};
}

std::vector<std::size_t> share_bounds(int items, std::size_t bytes_per_item, const Ranks& ranks) {
  std::vector<std::size_t> bounds;
  for (int rank = 0; rank <= ranks.size(); ++rank)
    bounds.push_back(bytes_per_item * static_cast<std::size_t>(bound(items, rank, ranks.size())));
  return bounds;
}

std::string first_failure(Ranks& ranks, const std::string& own) {
  using Why = std::array<char, 1000>;
  std::vector<Why> all(static_cast<std::size_t>(ranks.size()), Why{});
  Why& mine = all[static_cast<std::size_t>(ranks.rank())];
  own.copy(mine.data(), mine.size() - 1);
  gather_shares<Why>(&ranks, all, ranks.size(), Patience::unlimited);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank][0] != 0) return all[rank].data();
  return {};
}

bool started_as_rank() { return started_ranks() > 1; }

int local_rank() {
  // Open MPI; MPICH; Slurm
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* text = std::getenv(variable)) return std::max(0, std::atoi(text));
  return 0;
}

int ranks_here() {
  if (!started_as_rank()) return 1;
  // Open MPI; MPICH; Slurm, whose text may go on: "4(x2)".
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"})
    if (const char* text = std::getenv(variable)) return std::max(1, std::atoi(text));
  return 1;
}

std::unique_ptr<Ranks> join_ranks(const std::vector<std::string>& modules) {
  std::string tried;
  for (const std::string& module : modules) {
    tried += (tried.empty() ? "" : ", ") + module;
    std::error_code error;
    if (!std::filesystem::exists(module, error)) continue;
    // Open MPI's own plugins look for its symbols among the global ones.
    void* const handle = dlopen(std::filesystem::absolute(module).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) throw Error(module + ": cannot load the MPI module: " + dlerror());
    const auto join = reinterpret_cast<Ranks* (*)()>(dlsym(handle, "hone_join_ranks"));
    if (!join) throw Error(module + ": is not an MPI module of hone");
    std::unique_ptr<Ranks> ranks(join());
    if (ranks && ranks->size() == 1)  // every process would take itself for the only one
      throw InputError(module + ": the MPI of this module is not the one that started " +
                       std::to_string(started_ranks()) +
                       " ranks; use the mpirun that belongs to it, or name another module in HONE_MPI_MODULE");
    return ranks;
  }
  throw InputError(
      "started as one of several ranks, but there is no MPI module (looked for " + tried +
      "); build hone where CMake finds MPI, name the module in HONE_MPI_MODULE, or start it without mpirun");
}

}  // namespace hone
