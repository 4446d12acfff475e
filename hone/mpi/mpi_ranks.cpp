// The MPI module: the only file that knows MPI. The program loads it when it is started as one of several ranks.

#include <mpi.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t largest_message = std::size_t{1} << 30;  // MPI counts in int
constexpr int most_patience = 1000000;                         // seconds

// 0: what the environment says is no such number.
int seconds_of_patience() {
  const char* text = std::getenv("HONE_MPI_PATIENCE");
  if (!text) return 120;
  int seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [next, error] = std::from_chars(text, end, seconds);
  return error == std::errc() && next == end && seconds >= 1 && seconds <= most_patience ? seconds : 0;
}

// Open MPI's mpirun may wait a quarter of an hour and longer for a host that it cannot reach. If it has not ended ten
// seconds after this rank has given up, a child process ends it: by SIGINT, by a second one, which mpirun takes for
// "do not wait", and by SIGKILL. Only if this rank's parent is mpirun: other launchers look after themselves.
void end_launcher_later() {
  const pid_t launcher = getppid();
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(launcher) + "/comm"), name);
  constexpr std::array known = {"mpirun", "mpiexec", "orterun", "prterun"};
  if (std::ranges::none_of(known, [&](const char* known_name) { return name.starts_with(known_name); })) return;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, launcher, 0));  // no other process can get this number
  if (handle < 0 || getppid() != launcher || fork() != 0) return;
  setsid();  // mpirun ends its ranks' process groups
  for (int file = 0; file < 1024; ++file)
    if (file != handle) close(file);  // mpirun waits for the end of their output
  pollfd end{.fd = handle, .events = POLLIN, .revents = 0};
  int seconds = 10;
  for (const int signal : {SIGINT, SIGINT, SIGKILL}) {
    if (poll(&end, 1, 1000 * seconds) != 0) break;
    syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0);
    seconds = 2;
  }
  _exit(0);
}

// Signs of life between rank 0 and each other rank, sent by a thread of its own: a wait without a limit ends when a
// rank is lost, and not because a model is slow. Silence is counted in this rank's own beats, so that a job that the
// scheduler suspends and wakes up again misses none.
class Pulse {
 public:
  // `calls`: held during every call of MPI. All ranks make their Pulse at the same time.
  Pulse(std::timed_mutex& calls, int rank, int size, std::chrono::duration<double> patience)
      : calls_(calls),
        interval_(std::min(patience / 8, std::chrono::duration<double>(2))),
        most_silent_(static_cast<int>(patience / interval_)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    if (rank > 0) peers_.push_back({.rank = 0});
    for (int other = 1; rank == 0 && other < size; ++other) peers_.push_back({.rank = other});
    for (Peer& peer : peers_) listen(peer);
    thread_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
  }

  // A rank that has been silent for longer than the patience; −1: there is none.
  int silent() const { return silent_; }

  // Ends the thread. To be called when no rank waits any more.
  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    for (Peer& peer : peers_) {
      if (peer.saying != MPI_REQUEST_NULL) MPI_Request_free(&peer.saying);  // the others may have ended
      if (peer.hearing == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&peer.hearing);
      MPI_Wait(&peer.hearing, MPI_STATUS_IGNORE);
    }
  }

 private:
  struct Peer {
    int rank;
    MPI_Request saying = MPI_REQUEST_NULL, hearing = MPI_REQUEST_NULL;
    int silent = 0;  // beats
    bool lost = false;
  };

  // A failed call says that the peer is lost: it stays silent.
  void listen(Peer& peer) {
    peer.lost |= MPI_Irecv(nullptr, 0, MPI_BYTE, peer.rank, 0, comm_, &peer.hearing) != MPI_SUCCESS;
  }
  static bool is_done(MPI_Request& request, Peer& peer) {
    int done = 0;
    peer.lost |= MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    return done && !peer.lost;
  }

  void exchange(Peer& peer) {
    ++peer.silent;
    if (peer.lost) return;
    if (is_done(peer.saying, peer))
      peer.lost |= MPI_Isend(nullptr, 0, MPI_BYTE, peer.rank, 0, comm_, &peer.saying) != MPI_SUCCESS;
    while (is_done(peer.hearing, peer)) {
      peer.silent = 0;
      listen(peer);
    }
  }

  void beat(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any woken;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      {
        const std::lock_guard own(calls_);
        for (Peer& peer : peers_) exchange(peer);
      }
      const auto lost = std::ranges::find_if(peers_, [&](const Peer& peer) { return peer.silent > most_silent_; });
      silent_ = lost == peers_.end() ? -1 : lost->rank;
      woken.wait_for(lock, stop, interval_, [] { return false; });
    }
  }

  std::timed_mutex& calls_;
  std::chrono::duration<double> interval_;
  int most_silent_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Peer> peers_;
  std::atomic<int> silent_ = -1;
  std::jthread thread_;  // last: it uses the others
};

class MpiRanks final : public Ranks {
 public:
  MpiRanks() : patience_(seconds_of_patience()) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<std::size_t>(length));
    MPI_Bcast(&patience_, 1, MPI_INT, 0, MPI_COMM_WORLD);  // launchers need not pass the environment on
    if (patience_ == 0) {
      MPI_Finalize();
      return;
    }
    if (provided >= MPI_THREAD_SERIALIZED && size_ > 1)
      pulse_ = std::make_unique<Pulse>(calls_, rank_, size_, std::chrono::seconds(patience_));
  }

  bool patient() const { return patience_ > 0; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }
  bool sound() const override { return failure_.empty(); }

  void broadcast(std::span<std::byte> bytes, int from, Patience patience) override {
    complete(sending_, Patience::limited);
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), largest_message))) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int count = static_cast<int>(std::min(bytes.size(), largest_message));
      call([&] { return MPI_Ibcast(bytes.data(), count, MPI_BYTE, from, MPI_COMM_WORLD, &request); });
      complete(request, patience);
    }
  }

  void gather(std::span<std::byte> bytes, std::span<const std::size_t> bounds, Patience patience) override {
    complete(sending_, Patience::limited);
    if (bytes.size() > largest_message) throw Error("ranks: more than 1 GiB cannot be gathered at once");
    counts_.resize(static_cast<std::size_t>(size_));
    offsets_.resize(static_cast<std::size_t>(size_));
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      offsets_[r] = static_cast<int>(bounds[r]);
      counts_[r] = static_cast<int>(bounds[r + 1] - bounds[r]);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    call([&] {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, bytes.data(), counts_.data(), offsets_.data(), MPI_BYTE,
                             MPI_COMM_WORLD, &request);
    });
    complete(request, patience);
  }

  void send(std::span<const std::byte> bytes, int to) override {
    complete(sending_, Patience::limited);
    call([&] { return MPI_Isend(bytes.data(), size_of(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD, &sending_); });
  }

  void receive(std::span<std::byte> bytes, int from) override {
    MPI_Request request = MPI_REQUEST_NULL;
    call([&] { return MPI_Irecv(bytes.data(), size_of(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, &request); });
    complete(request, Patience::limited);
  }

  void finish() override {
    complete(sending_, Patience::limited);
    MPI_Request all = MPI_REQUEST_NULL;
    call([&] { return MPI_Ibarrier(MPI_COMM_WORLD, &all); });
    complete(all, Patience::unlimited);
    if (pulse_) pulse_->stop();
    MPI_Finalize();
  }

  void abort(int code) override {
    if (!failure_.empty()) end_launcher_later();
    const std::unique_lock own(calls_, std::chrono::seconds(1));  // ends in any case
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  static int size_of(std::span<const std::byte> bytes) {
    if (bytes.size() > largest_message) throw Error("ranks: a message of more than 1 GiB cannot be sent");
    return static_cast<int>(bytes.size());
  }

  [[noreturn]] void fail(const std::string& why) {
    failure_ = "rank " + std::to_string(rank_) + " on host " + host_ + ": " + why;
    throw Error(failure_);
  }

  void check(int status) {
    if (!failure_.empty()) throw Error(failure_);
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    fail("MPI: " + std::string(text, static_cast<std::size_t>(length)));
  }

  template <class Call>
  void call(Call mpi) {
    const std::lock_guard own(calls_);
    check(mpi());
  }

  // Polls, so that it can give up. A long wait leaves the core to others.
  void complete(MPI_Request& request, Patience patience) {
    const auto begin = Clock::now();
    for (int looks = 0;; ++looks) {
      int done = 0;
      call([&] { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); });
      if (done) return;
      if (looks < 1000) continue;
      const auto waited = Clock::now() - begin;
      if (const int silent = pulse_ ? pulse_->silent() : -1; silent >= 0)
        fail("no sign of life from rank " + std::to_string(silent) + " for " + std::to_string(patience_) +
             " s: it or the network is down");
      if (patience == Patience::limited && waited > 1.5 * std::chrono::seconds(patience_))  // silence is seen before
        fail("no word from the other ranks for " + std::to_string(patience_) +
             " s: one of them hangs, or the network is down");
      if (waited > std::chrono::milliseconds(100))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      else
        std::this_thread::yield();
    }
  }

  int patience_;  // seconds
  int rank_ = 0, size_ = 1;
  std::string host_;
  std::string failure_;  // the first; from then on every call has it
  MPI_Request sending_ = MPI_REQUEST_NULL;
  std::vector<int> counts_, offsets_;
  std::timed_mutex calls_;  // held during every call of MPI
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace
}  // namespace hone

// Null: rank 0 throws, and the others say nothing.
extern "C" hone::Ranks* hone_join_ranks() {
  auto ranks = std::make_unique<hone::MpiRanks>();
  if (ranks->patient()) return ranks.release();
  if (ranks->rank() > 0) return nullptr;
  throw hone::InputError("HONE_MPI_PATIENCE is '" + std::string(std::getenv("HONE_MPI_PATIENCE")) +
                         "'; expected a whole number of seconds from 1 to " + std::to_string(hone::most_patience));
}
