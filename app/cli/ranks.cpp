#include "app/cli/ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "app/cli/commands.hpp"
#include "app/run/recipe.hpp"
#include "hone/base/error.hpp"

namespace hone {

Lead* lead = nullptr;

namespace {

constexpr std::array sharing = {"train", "eval", "reproduce"};

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

// Nothing that is written to standard output appears while it lives.
class SilentOutput {
 public:
  SilentOutput() : output_(::dup(STDOUT_FILENO)) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  ~SilentOutput() {
    std::fflush(stdout);
    ::dup2(output_, STDOUT_FILENO);
    ::close(output_);
  }
  SilentOutput(const SilentOutput&) = delete;
  SilentOutput& operator=(const SilentOutput&) = delete;

 private:
  int output_;
};

// Every rank runs the cells that no other has claimed. When all are through, rank 0 does what is left, such as the cell
// of a rank that failed, and prints the result.
int share_cells(Ranks& ranks, const std::function<int(Speech)>& command) {
  std::vector<int> codes(static_cast<std::size_t>(ranks.size()));
  {
    const SilentOutput silent;
    codes[static_cast<std::size_t>(ranks.rank())] = command(ranks.rank() == 0 ? Speech::usual : Speech::errors);
  }
  gather_shares<int>(&ranks, codes, ranks.size(), Patience::unlimited);
  ranks.finish();
  const int worst = std::ranges::max(codes);
  if (ranks.rank() > 0) return 0;
  return worst == bad_input || worst > 128 ? worst : command(Speech::errors);  // 128: stopped by a signal
}

}  // namespace

int run_on_ranks(const std::string& name, const std::function<int(Speech)>& command) {
  if (!started_as_rank() || name.starts_with("-")) return command(Speech::usual);
  const std::unique_ptr<Ranks> ranks = join_ranks(module_places());
  if (name == "reproduce") return share_cells(*ranks, command);
  if (ranks->rank() > 0) return follow_job(*ranks);
  Lead leading(*ranks, engine_of);
  lead = &leading;
  int code = bad_input;
  if (std::ranges::count(sharing, name) > 0)
    code = command(Speech::usual);
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
