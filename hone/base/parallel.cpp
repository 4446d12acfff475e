#include "hone/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "hone/base/pins.hpp"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

// How a thread waits. Work arrives in quick succession, and to wake up takes 50 µs and more, above all in a virtual
// machine: so the thread looks again and again for a while before it goes to sleep. A long wait means that the machine
// is busy and those that it waits for have no core: looking would only take time from them, so it looks for a short
// while from then on, and longer again after many short waits. With more threads than cores it does not look at all.
class Waiting {
 public:
  explicit Waiting(int threads) {
    if (static_cast<unsigned>(threads) > std::thread::hardware_concurrency()) looking_ = Clock::duration::zero();
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

  Clock::duration looking_ = longest;
};

thread_local bool works_for_team = false;

struct alignas(64) Seconds {  // each in a cache line of its own
  double value = 0;
};

// Where the shares of threads begin, and how fast each thread has been of late: 1 if as fast as the others. On a
// machine with other work, or whose cores differ, a slow thread gets fewer items. Written by the calling thread between
// rounds.
class Shares {
 public:
  explicit Shares(int threads) : speed_(static_cast<std::size_t>(threads), 1.0), bound_(speed_.size() + 1) {}

  int begin(int thread) const { return bound_[static_cast<std::size_t>(thread)]; }

  // As many items as threads: one each. Fewer: the first threads have one, and so on as evenly as possible.
  void cut(int items) {
    const auto threads = static_cast<int>(speed_.size());
    if (items <= threads) {
      for (int i = 0; i <= threads; ++i)
        bound_[static_cast<std::size_t>(i)] = static_cast<int>(std::int64_t{items} * i / threads);
      return;
    }
    const double total = std::accumulate(speed_.begin(), speed_.end(), 0.0);
    std::vector<int>& count = count_;
    count.assign(speed_.size(), 0);
    int left = items;
    for (std::size_t i = 0; i < count.size(); ++i) left -= count[i] = static_cast<int>(items * speed_[i] / total);
    for (; left > 0; --left) {  // to the thread that would be done first
      std::size_t best = 0;
      for (std::size_t i = 1; i < count.size(); ++i)
        if ((count[i] + 1) * speed_[best] < (count[best] + 1) * speed_[i]) best = i;
      ++count[best];
    }
    for (std::size_t i = 0; i < count.size(); ++i) bound_[i + 1] = bound_[i] + count[i];
  }

  // Learns from the seconds that the shares took.
  void learn(const std::vector<Seconds>& seconds) {
    constexpr double shortest = 20e-6, weight = 0.2, slowest = 0.2, fastest = 5;
    const auto items = [&](std::size_t i) { return bound_[i + 1] - bound_[i]; };
    if (bound_.back() <= static_cast<int>(speed_.size())) return;
    double sum = 0;
    int counted = 0;
    for (std::size_t i = 0; i < speed_.size(); ++i) {
      if (items(i) == 0) continue;
      if (seconds[i].value < shortest) return;
      sum += items(i) / seconds[i].value;
      ++counted;
    }
    for (std::size_t i = 0; i < speed_.size(); ++i) {
      const double seen =
          items(i) == 0 ? 1 : items(i) / seconds[i].value * counted / sum;  // one without items tries again
      speed_[i] += weight * (std::clamp(seen, slowest, fastest) - speed_[i]);
    }
  }

 private:
  std::vector<double> speed_;
  std::vector<int> bound_, count_;
};

}  // namespace

struct Team::State {
  explicit State(int count) : threads(count), shares(count), seconds(static_cast<std::size_t>(count)) {}

  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(int, int, int)>* share = nullptr;
  int threads;
  Shares shares;
  std::vector<Seconds> seconds;  // that the threads' last shares took
  Waiting waiting{threads};      // of the calling thread
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
    seconds[static_cast<std::size_t>(thread)].value = std::chrono::duration<double>(Clock::now() - start).count();
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
  if (threads > 1) state_->pins.emplace(threads, works_for_team);
  for (int thread = 1; thread < state_->threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
    state_->pins->add(state_->workers.back(), thread);
  }
}

Team::~Team() = default;

int Team::threads() const { return state_->threads; }

void Team::run(int items, const std::function<void(int, int, int)>& share) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.share = &share;
    state.shares.cut(items);
    state.running = state.threads - 1;
    state.failure = nullptr;
    ++state.round;
  }
  state.wake.notify_all();
  state.execute(0);
  const auto finished = [&] { return state.running == 0; };
  state.waiting.wait(finished, [&] {
    std::unique_lock lock(state.mutex);
    state.done.wait(lock, finished);
  });
  if (state.failure) std::rethrow_exception(state.failure);
  state.shares.learn(state.seconds);
}

}  // namespace hone
