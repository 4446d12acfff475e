#include "hone/base/parallel.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hone {

struct Team::State {
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(int, int, int)>* share = nullptr;
  int items = 0;
  int threads = 1;
  int running = 0;
  std::uint64_t round = 0;
  bool stop = false;
  std::exception_ptr failure;
  std::vector<std::jthread> workers;

  ~State() {  // before the threads are joined, also where not all could be made
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
    std::uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || round != seen; });
        if (stop) return;
        seen = round;
      }
      execute(thread);
      const std::lock_guard lock(mutex);
      if (--running == 0) done.notify_one();
    }
  }
};

Team::Team(int threads) : state_(std::make_unique<State>()) {
  state_->threads = threads > 1 ? threads : 1;
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
  std::unique_lock lock(state.mutex);
  state.done.wait(lock, [&] { return state.running == 0; });
  if (state.failure) std::rethrow_exception(state.failure);
}

}  // namespace hone
