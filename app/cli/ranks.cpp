#include "app/cli/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "app/run/recipe.hpp"
#include "hone/base/error.hpp"

namespace hone {

Lead* lead = nullptr;

namespace {

constexpr std::array sharing = {"train", "eval"};

std::vector<std::string> module_places() {
  if (const char* named = std::getenv("HONE_MPI_MODULE")) return {named};
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {(folder / "libhone_mpi.so").string(),
          (folder.parent_path() / HONE_LIBRARY_FOLDER / "hone/libhone_mpi.so").string()};
}

// A signal reaches all ranks; rank 0 ends the work and then the others.
int follow_job(Ranks& ranks) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  try {
    follow(ranks, engine_of);
    ranks.finish();
    return 0;
  } catch (const std::exception& error) {
    const std::string text = error.what(), place = fmt::format("rank {} on host {}: ", ranks.rank(), ranks.host());
    fmt::print(stderr, "hone: {}{}\n", text.starts_with(place) ? "" : place, text);
    ranks.abort(1);
  }
  return 1;
}

}  // namespace

int run_on_ranks(const std::string& name, const std::function<int()>& command) {
  if (!started_as_rank() || name.starts_with("-")) return command();
  const std::unique_ptr<Ranks> ranks = join_ranks(module_places());
  if (ranks->rank() > 0) return follow_job(*ranks);
  Lead leading(*ranks, engine_of);
  lead = &leading;
  int code = 2;
  if (std::ranges::count(sharing, name) > 0)
    code = command();
  else
    fmt::print(stderr, "hone: '{}' does not share its work with other ranks; start it without mpirun ({} do)\n", name,
               fmt::join(sharing, ", "));
  lead = nullptr;
  if (!leading.in_step()) ranks->abort(code == 0 ? 1 : code);
  leading.end();
  ranks->finish();
  return code;
}

}  // namespace hone
