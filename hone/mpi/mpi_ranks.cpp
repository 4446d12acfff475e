// The MPI module: the only file that knows MPI. The program loads it when it is started as one of several ranks.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t largest_message = std::size_t{1} << 30;  // MPI counts in int

int seconds_of_patience() {
  const char* text = std::getenv("HONE_MPI_PATIENCE");
  const int seconds = text ? std::atoi(text) : 120;
  if (seconds < 1) throw InputError("HONE_MPI_PATIENCE: expected a number of seconds, at least 1");
  return seconds;
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks() : patience_(seconds_of_patience()) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<std::size_t>(length));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }
  bool sound() const override { return sound_; }

  void broadcast(std::span<std::byte> bytes, int from, Patience patience) override {
    complete(sending_, Patience::limited);
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), largest_message))) {
      MPI_Request request = MPI_REQUEST_NULL;
      const int count = static_cast<int>(std::min(bytes.size(), largest_message));
      check(MPI_Ibcast(bytes.data(), count, MPI_BYTE, from, MPI_COMM_WORLD, &request));
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
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, bytes.data(), counts_.data(), offsets_.data(), MPI_BYTE,
                          MPI_COMM_WORLD, &request));
    complete(request, patience);
  }

  void send(std::span<const std::byte> bytes, int to) override {
    complete(sending_, Patience::limited);
    check(MPI_Isend(bytes.data(), size_of(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD, &sending_));
  }

  void receive(std::span<std::byte> bytes, int from) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(bytes.data(), size_of(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, &request));
    complete(request, Patience::limited);
  }

  void finish() override {
    complete(sending_, Patience::limited);
    MPI_Finalize();
  }

  void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  static int size_of(std::span<const std::byte> bytes) {
    if (bytes.size() > largest_message) throw Error("ranks: a message of more than 1 GiB cannot be sent");
    return static_cast<int>(bytes.size());
  }

  [[noreturn]] void fail(const std::string& why) {
    sound_ = false;
    throw Error("rank " + std::to_string(rank_) + " on host " + host_ + ": " + why);
  }

  void check(int status) {
    if (!sound_) fail("the connection to the other ranks is lost");
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    fail("MPI: " + std::string(text, static_cast<std::size_t>(length)));
  }

  // Waits by asking, so that it can give up. Who waits for long leaves the core to others.
  void complete(MPI_Request& request, Patience patience) {
    const auto begin = Clock::now();
    for (int looks = 0;; ++looks) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done) return;
      if (looks < 1000) continue;
      const auto waited = Clock::now() - begin;
      if (patience == Patience::limited && waited > std::chrono::seconds(patience_))
        fail("no word from the other ranks for " + std::to_string(patience_) +
             " s: one of them or the network is down");
      if (waited > std::chrono::milliseconds(100))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      else
        std::this_thread::yield();
    }
  }

  int patience_;  // seconds
  int rank_ = 0, size_ = 1;
  std::string host_;
  bool sound_ = true;
  MPI_Request sending_ = MPI_REQUEST_NULL;
  std::vector<int> counts_, offsets_;
};

}  // namespace
}  // namespace hone

extern "C" hone::Ranks* hone_join_ranks() { return new hone::MpiRanks; }
