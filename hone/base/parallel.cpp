#include "hone/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "hone/base/cpus.hpp"
#include "hone/base/pins.hpp"
#include "hone/base/shares.hpp"
#include "hone/base/solo.hpp"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

// How a thread waits. Work arrives in quick succession, and to wake up takes 50 µs and more, above all in a virtual
// machine, so a thread spins for a while before it goes to sleep. A long wait means that the machine is busy and the
// others have no core. Spinning would only take time from them, so from then on the thread spins for a short while
// only, and longer again after many short waits. With more threads than CPUs it does not spin at all.
class Waiting {
 public:
  explicit Waiting(int threads) {
    if (threads > default_threads()) looking_ = Clock::duration::zero();
  }

  // Returns once `condition` holds; `sleep` returns when it does.
  template <class Condition, class Sleep>
  void wait(Condition condition, Sleep sleep) {
    const auto start = Clock::now();
    if (looking_ == Clock::duration::zero()) {
      if (!condition()) sleep();
      return;
    }
    if (!seen(start + looking_, condition)) sleep();
    if (Clock::now() - start > longest)
      looking_ = shortest;
    else
      looking_ = std::min<Clock::duration>(longest, looking_ + looking_ / 16);
  }

 private:
  static constexpr std::chrono::microseconds shortest{50}, longest{1000};

  // The length of a pause instruction differs a lot between CPUs, so the clock decides; it is not read every time.
  template <class Condition>
  static bool seen(Clock::time_point end, Condition condition) {
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

  Clock::duration looking_ = shortest;
};

thread_local bool works_for_team = false;  // while it works on a share

double seconds_of(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

struct alignas(64) Seconds {  // each in a cache line of its own
  double value = 0;
};

}  // namespace

struct Team::State {
  explicit State(int count) : threads(count), shares(count), seconds(static_cast<std::size_t>(count)) {}

  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(int, int, int)>* share = nullptr;
  int threads;
  Shares shares;
  std::vector<Seconds> seconds;  // taken by the threads' last shares
  Waiting waiting{threads};      // of the calling thread
  Solo solo;
  std::atomic<int> running = 0;
  std::atomic<std::uint64_t> round = 0;
  std::atomic<bool> stop = false;
  std::exception_ptr failure;
  std::optional<Pins> pins;
  std::vector<std::jthread> workers;  // last member, so the threads are joined before anything else is destroyed

  ~State() {  // tells the threads to end; also if not all could be started
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
  }

  void execute(int thread) {
    const int begin = shares.begin(thread), end = shares.begin(thread + 1);
    const auto start = Clock::now();
    try {
      if (begin < end) (*share)(begin, end, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    seconds[static_cast<std::size_t>(thread)].value = seconds_of(Clock::now() - start);
  }

  // The shares of all threads, each as its own thread would get it.
  void execute_alone() {
    for (int thread = 0; thread < threads && !failure; ++thread) execute(thread);
  }

  // The same by all threads; the caller is the first.
  void execute_together() {
    {
      const std::lock_guard lock(mutex);
      running = threads - 1;
      ++round;
    }
    wake.notify_all();
    execute(0);
    const auto finished = [&] { return running == 0; };
    waiting.wait(finished, [&] {
      std::unique_lock lock(mutex);
      done.wait(lock, finished);
    });
  }

  void work(int thread) {
    works_for_team = true;
    Waiting own(threads);
    for (std::uint64_t seen = 0;;) {
      const auto called = [&] { return stop || round != seen; };
      own.wait(called, [&] {
        std::unique_lock lock(mutex);
        wake.wait(lock, called);
      });
      if (stop) return;
      ++seen;
      execute(thread);
      if (--running > 0) continue;
      const std::lock_guard lock(mutex);
      done.notify_one();
    }
  }
};

Team::Team(int threads) : state_(std::make_unique<State>(threads > 1 ? threads : 1)) {
  state_->pins.emplace(state_->threads, works_for_team);
  for (int thread = 1; thread < state_->threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
    state_->pins->add(state_->workers.back(), thread);
  }
}

Team::~Team() = default;

int Team::threads() const { return state_->threads; }

void Team::run(int items, const std::function<void(int, int, int)>& share) {
  State& state = *state_;
  state.share = &share;  // that the threads see once `round` says so
  state.shares.cut(items);
  state.failure = nullptr;
  const auto start = Clock::now();
  const bool alone = state.solo.works_alone(seconds_of(start.time_since_epoch()));
  const bool inside_another = std::exchange(works_for_team, true);
  if (alone)
    state.execute_alone();
  else
    state.execute_together();
  works_for_team = inside_another;
  if (!alone) {
    double work = 0;
    for (const Seconds& seconds : state.seconds) work += seconds.value;
    const auto end = Clock::now();
    state.solo.learn(seconds_of(end.time_since_epoch()), seconds_of(end - start), work);
  }
  if (state.failure) std::rethrow_exception(state.failure);
  if (!alone) state.shares.learn([&](std::size_t i) { return state.seconds[i].value; });
}

}  // namespace hone
