// What ranks need to exchange numbers, as training does it: latency and bandwidth between ranks 0 and 1, and a gather
// of one number per datum and a broadcast of the gradient on all ranks. bench/cluster.py predicts efficiency from
// these.
//   mpirun -n R bench_exchange [libhone_mpi.so]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "hone/base/ranks.hpp"

namespace {

using namespace hone;

// Median seconds of a call.
template <class Call>
double seconds_of(int repeats, Call call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  call();
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

// One way between ranks 0 and 1. The others wait in the broadcast, which also ends the last sending.
double one_way(Ranks& ranks, std::size_t bytes, int repeats) {
  std::vector<std::byte> out(bytes), in(bytes);
  double seconds = 0;
  if (ranks.rank() < 2)
    seconds = 0.5 * seconds_of(repeats, [&] {
                if (ranks.rank() == 0) ranks.send(out, 1);
                ranks.receive(in, 1 - ranks.rank());
                if (ranks.rank() == 1) ranks.send(out, 0);
              });
  ranks.broadcast(in, 0, Patience::limited);
  return seconds;
}

// The module that HONE_MPI_MODULE names, as for `hone`, or else that of the build of this program.
std::string module_place() {
  if (const char* named = std::getenv("HONE_MPI_MODULE")) return named;
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "bin/libhone_mpi.so").string();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 2 || !started_as_rank()) {
    fmt::print(stderr, "usage: mpirun -n R bench_exchange [libhone_mpi.so]\n");
    return 2;
  }
  constexpr std::size_t block = 1 << 17, gradient = 2400000;
  const auto ranks = join_ranks({argc == 2 ? argv[1] : module_place()});
  if (!ranks) return 2;
  const double latency = one_way(*ranks, 8, 1000), of_block = one_way(*ranks, block, 300);
  std::vector<double> numbers(1000);
  const double gathered =
      seconds_of(300, [&] { gather_shares<double>(ranks.get(), numbers, static_cast<int>(numbers.size())); });
  std::vector<std::byte> bytes(gradient);
  const double sent = seconds_of(100, [&] { ranks->broadcast(bytes, ranks->size() - 1, Patience::limited); });
  if (ranks->rank() == 0)
    fmt::print(
        "{{\"ranks\": {}, \"latency_us\": {:.3f}, \"bytes_per_us\": {:.1f}, \"gather_1000_us\": {:.2f}, "
        "\"broadcast_2400000_us\": {:.1f}}}\n",
        ranks->size(), 1e6 * latency, block / (1e6 * (of_block - latency)), 1e6 * gathered, 1e6 * sent);
  ranks->finish();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_exchange: {}\n", error.what());
  return 1;
}
