#include "hone/base/parallel.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

// Work arrives in quick succession, so a waiting thread spins this long before it goes to sleep. It does not spin if
// there are more threads than cores.
Clock::duration look_time(int threads) {
  const bool free = static_cast<unsigned>(threads) <= std::thread::hardware_concurrency();
  return free ? std::chrono::microseconds(50) : Clock::duration::zero();
}

// The length of a pause instruction differs a lot between CPUs, so the clock decides; it is not read every time.
template <class Condition>
bool seen_soon(Clock::duration time, Condition condition) {
  if (time == Clock::duration::zero()) return condition();
  const auto end = Clock::now() + time;
  do {
    for (int look = 0; look < 32; ++look) {
      if (condition()) return true;
#if defined(__x86_64__) && defined(__GNUC__)
      __builtin_ia32_pause();
#else
      std::this_thread::yield();
#endif
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

struct Team::State {
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(int, int, int)>* share = nullptr;
  int items = 0;
  int threads = 1;
  Clock::duration looking = Clock::duration::zero();
  std::atomic<int> running = 0;
  std::atomic<std::uint64_t> round = 0;
  std::atomic<bool> stop = false;
  std::exception_ptr failure;
  std::vector<std::jthread> workers;  // last member, so the threads are joined before anything else is destroyed

  ~State() {  // tells the threads to end; also if not all could be started
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
  }

  void execute(int thread) {
    const auto bound = [&](int i) { return static_cast<int>(static_cast<std::int64_t>(items) * i / threads); };
    try {
      if (bound(thread) < bound(thread + 1)) (*share)(bound(thread), bound(thread + 1), thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void work(int thread) {
    for (std::uint64_t seen = 0;;) {
      const auto called = [&] { return stop || round != seen; };
      if (!seen_soon(looking, called)) {
        std::unique_lock lock(mutex);
        wake.wait(lock, called);
      }
      if (stop) return;
      ++seen;
      execute(thread);
      if (--running > 0) continue;
      const std::lock_guard lock(mutex);
      done.notify_one();
    }
  }
};

Team::Team(int threads) : state_(std::make_unique<State>()) {
  state_->threads = threads > 1 ? threads : 1;
  state_->looking = look_time(threads);
  for (int thread = 1; thread < state_->threads; ++thread)
    state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
}

Team::~Team() = default;

int Team::threads() const { return state_->threads; }

void Team::run(int items, const std::function<void(int, int, int)>& share) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.share = &share;
    state.items = items;
    state.running = state.threads - 1;
    state.failure = nullptr;
    ++state.round;
  }
  state.wake.notify_all();
  state.execute(0);
  const auto finished = [&] { return state.running == 0; };
  if (!seen_soon(state.looking, finished)) {
    std::unique_lock lock(state.mutex);
    state.done.wait(lock, finished);
  }
  if (state.failure) std::rethrow_exception(state.failure);
}

}  // namespace hone
