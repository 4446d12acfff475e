#include "app/cli/ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "app/cli/commands.hpp"
#include "app/run/recipe.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "hone/engine/message.hpp"
#include "hone/fit/shared_searches.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {

Lead* lead = nullptr;
std::vector<RankFacts> rank_facts;
bool ranks_run_cells = false;

namespace {

constexpr std::array sharing = {"train", "eval", "fit", "reproduce"};

// Rank 0's part of a fit.
struct FitJob {
  Ranks& ranks;
  bool begun = false;  // the others know what to do
  std::unique_ptr<SharedPosterior> shared;
};
FitJob* fit_job = nullptr;

std::vector<std::string> module_places() {
  if (const char* named = std::getenv("HONE_MPI_MODULE")) return {named};
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {(folder / "libhone_mpi.so").string(),
          (folder.parent_path() / HONE_LIBRARY_FOLDER / "hone/libhone_mpi.so").string()};
}

// All ranks get rank 0's message; empty: there is nothing to do.
Message from_rank_0(Ranks& ranks, Message message = {}) {
  std::size_t size = message.bytes().size();
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, Patience::unlimited);
  if (ranks.rank() > 0) message = Message(std::vector<std::byte>(size));
  if (size > 0) ranks.broadcast(message.bytes(), 0, Patience::unlimited);
  return message;
}

// What the other ranks do in a fit: they open the model and serve rank 0.
void follow_fit(Ranks& ranks) {
  Message message = from_rank_0(ranks);
  if (message.bytes().empty()) return;
  PosteriorRunConfig config;
  config.model = message.take_text();
  config.data = message.take_text();
  const int threads = message.take<int>();
  std::unique_ptr<Posterior> posterior;
  std::string why;
  try {
    posterior = open_posterior(config, {});
  } catch (const std::exception& error) {
    why = fmt::format("rank {} on host {}: {}", ranks.rank(), ranks.host(), error.what());
  }
  if (first_failure(ranks, why).empty()) serve_evaluations(*posterior, ranks, threads, search_for_rank_0);
}

// A signal reaches all ranks; rank 0 ends the work and then the others.
int follow_job(Ranks& ranks, const std::function<void()>& work) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);
  try {
    work();
    ranks.finish();
    return 0;
  } catch (const std::exception& error) {
    const std::string text = error.what(), place = fmt::format("rank {} on host {}: ", ranks.rank(), ranks.host());
    fmt::print(stderr, "hone: {}{}\n", text.starts_with(place) ? "" : place, text);
    ranks.abort(1);
  }
  return 1;
}

// When a rank is lost, MPICH's mpirun names a host and a process: the lost one, or one that it ended then. So rank 0
// says at the start which rank is which process.
void name_processes(Ranks& ranks, Speech speech) {
  struct Place {
    std::array<char, 256> host{};
    int process = ::getpid();
  };
  std::vector<Place> places(static_cast<std::size_t>(ranks.size()));
  ranks.host().copy(places[static_cast<std::size_t>(ranks.rank())].host.data(), Place().host.size() - 1);
  gather_shares<Place>(&ranks, places, ranks.size(), Patience::unlimited);
  const bool by_mpich = std::getenv("HYDI_CONTROL_FD") != nullptr;  // of its launcher, Hydra
  if (ranks.rank() > 0 || !by_mpich || speech == Speech::errors) return;
  std::map<std::string, std::vector<std::string>> on_host;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    on_host[places[rank].host.data()].push_back(fmt::format("rank {} is process {}", rank, places[rank].process));
  for (const auto& [host, list] : on_host) fmt::print(stderr, "ranks: on host {}, {}\n", host, fmt::join(list, ", "));
}

// While it lives, nothing that is written to standard output appears.
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

// Every rank runs the cells that no other has claimed. When all have finished, rank 0 does the rest, such as the cell
// of a rank that failed, and prints the result.
int share_cells(Ranks& ranks, const std::function<int(Speech)>& command) {
  std::vector<int> codes(static_cast<std::size_t>(ranks.size()));
  {
    const SilentOutput silent;
    ranks_run_cells = true;
    codes[static_cast<std::size_t>(ranks.rank())] = command(ranks.rank() == 0 ? Speech::usual : Speech::errors);
    ranks_run_cells = false;
  }
  gather_shares<int>(&ranks, codes, ranks.size(), Patience::unlimited);
  ranks.finish();
  const int worst = std::ranges::max(codes);
  if (ranks.rank() > 0) return 0;
  return worst == bad_input || worst > 128 ? worst : command(Speech::errors);  // 128: stopped by a signal
}

// Rank 0 prints the facts of every rank.
int show_facts(Ranks& ranks, const std::function<int(Speech)>& command) {
  struct Facts {
    std::array<char, 256> host{}, level{}, device{};
    int threads = default_threads();
  };
  std::vector<Facts> all(static_cast<std::size_t>(ranks.size()));
  Facts& own = all[static_cast<std::size_t>(ranks.rank())];
  const auto note = [](std::array<char, 256>& to, std::string_view text) { text.copy(to.data(), to.size() - 1); };
  note(own.host, ranks.host());
  note(own.level, name_of(simd_level()));
  if (const CudaSupport cuda = cuda_support(); !cuda.devices.empty() && cuda.missing.empty()) {
    const std::size_t device = static_cast<std::size_t>(local_rank()) % cuda.devices.size();
    note(own.device, fmt::format("{} ({})", device, cuda.devices[device].name));
  }
  gather_shares<Facts>(&ranks, all, ranks.size(), Patience::unlimited);
  for (const Facts& rank : all)
    rank_facts.push_back(
        {.host = rank.host.data(), .level = rank.level.data(), .device = rank.device.data(), .threads = rank.threads});
  const int code = ranks.rank() > 0 ? 0 : command(Speech::usual);
  ranks.finish();
  return code;
}

int lead_fit(Ranks& ranks, const std::function<int(Speech)>& command) {
  FitJob job{ranks, false, nullptr};
  fit_job = &job;
  const int code = command(Speech::usual);
  fit_job = nullptr;
  if (!ranks.sound() || (job.shared && !job.shared->in_step())) ranks.abort(code == 0 ? 1 : code);
  if (!job.begun) from_rank_0(ranks);
  job.shared.reset();
  ranks.finish();
  return code;
}

}  // namespace

SharedPosterior* shared_by_ranks(const Posterior& posterior, const PosteriorRunConfig& config) {
  if (!fit_job) return nullptr;
  const int threads = config.check.fit.threads;
  Message message;
  message.put(std::filesystem::absolute(config.model).string());
  message.put(config.data.empty() ? "" : std::filesystem::absolute(config.data).string());
  message.put(threads);
  fit_job->begun = true;
  from_rank_0(fit_job->ranks, std::move(message));
  if (const std::string why = first_failure(fit_job->ranks, ""); !why.empty()) throw Error(why);
  fit_job->shared = std::make_unique<SharedPosterior>(posterior, fit_job->ranks, threads);
  return fit_job->shared.get();
}

int run_on_ranks(const std::string& name, Speech speech, const std::function<int(Speech)>& command) {
  if (!started_as_rank() || name.starts_with("-")) return command(Speech::usual);
  const std::unique_ptr<Ranks> ranks = join_ranks(module_places());
  if (!ranks) return 0;  // rank 0 has refused, and its code counts
  const bool shares = std::ranges::count(sharing, name) > 0;
  name_processes(*ranks, shares ? speech : Speech::errors);
  if (name == "reproduce") return share_cells(*ranks, command);
  if (name == "info") return show_facts(*ranks, command);
  if (ranks->rank() > 0)
    return follow_job(*ranks, [&] { name == "fit" ? follow_fit(*ranks) : follow(*ranks, engine_of); });
  if (name == "fit") return lead_fit(*ranks, command);
  Lead leading(*ranks, engine_of);
  lead = &leading;
  int code = bad_input;
  if (shares)
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
