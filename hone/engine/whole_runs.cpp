#include "hone/engine/whole_runs.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "hone/base/format.hpp"
#include "hone/engine/message.hpp"

namespace hone {
namespace {

// What all ranks hear of a run after some iterations.
struct News {
  TrainMetrics metrics;
  double step_size = 0;
  std::array<char, 1000> failure = {};
};
static_assert(std::is_trivially_copyable_v<TrainMetrics> && std::is_trivially_copyable_v<News>);  // sent as bytes

// How a call ended on the rank that made it.
enum class Ending : std::size_t { good, stopped, wrong_key, wrong_data, wrong_input, error };

// Calls `write`. If it throws, the message holds only the error.
template <class Write>
Ending ending_of(Write write, Message& message, const Ranks& ranks) {
  const auto failed = [&](Ending ending, const std::string& text, const std::string& key = "") {
    message = {};
    message.put(key);
    message.put(text);
    return ending;
  };
  try {
    write();
    return Ending::good;
  } catch (const Stopped&) {
    return failed(Ending::stopped, "");
  } catch (const KeyError& error) {
    return failed(Ending::wrong_key, error.message(), error.key());
  } catch (const DataError& error) {
    return failed(Ending::wrong_data, error.what());
  } catch (const InputError& error) {
    return failed(Ending::wrong_input, error.what());
  } catch (const Error& error) {
    return failed(Ending::error, error.what());
  } catch (const std::exception& error) {  // such as too little memory: it concerns this rank
    return failed(Ending::error, detail::format("rank {} on host {}: {}", ranks.rank(), ranks.host(), error.what()));
  }
}

[[noreturn]] void throw_again(Ending ending, Message& message) {
  const std::string key = message.take_text(), text = message.take_text();
  if (ending == Ending::stopped) throw Stopped();
  if (ending == Ending::wrong_key) throw KeyError(key, text);
  if (ending == Ending::wrong_data) throw DataError(text);
  if (ending == Ending::wrong_input) throw InputError(text);
  throw SharedError(text);
}

class WholeRuns final : public Engine {
 public:
  WholeRuns(const std::vector<std::uint64_t>& seeds, double step_size, Ranks& ranks, const MakeOwnRuns& make)
      : ranks_(ranks),
        per_rank_((static_cast<int>(seeds.size()) + ranks.size() - 1) / ranks.size()),
        step_size_(seeds.size(), step_size),
        failure_(seeds.size()),
        own_{first_of(ranks.rank()), first_of(ranks.rank() + 1)} {
    if (own_.count() > 0) engine_ = make({seeds.begin() + own_.begin, seeds.begin() + own_.end});
  }

  int runs() const override { return static_cast<int>(failure_.size()); }
  std::string device() const override { return engine_ ? engine_->device() : ""; }
  std::uint32_t iteration() const override { return iteration_; }
  double step_size(int run) const override { return step_size_[checked(run)]; }
  const std::string& failure(int run) const override { return failure_[checked(run)]; }

  // Estimates are added to those of rank 0, in the order of one process, whoever makes the iterations.
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override {
    if (metrics.size() < failure_.size())
      throw InputError(detail::format("{} runs need metrics for each of them, not {}", runs(), metrics.size()));
    metrics = metrics.first(failure_.size());
    ranks_.broadcast(std::as_writable_bytes(metrics), 0, Patience::limited);
    if (engine_) engine_->train(iterations, metrics.subspan(index(own_.begin), index(own_.count())));
    tell_all(metrics);
    iteration_ += iterations;
  }

  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress, int run) override {
    Message message = from_owner(run, [&](Engine& engine, int own, Message& to) {
      to.put_list(std::span<const PointEvaluation>(engine.evaluate(data, config, progress, own)));
    });
    return message.take_list<PointEvaluation>();
  }
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress, int run) override {
    Message message = from_owner(run, [&](Engine& engine, int own, Message& to) {
      to.put_list(std::span<const AnnealedPoint>(engine.anneal(data, task, progress, own)));
    });
    return message.take_list<AnnealedPoint>();
  }
  SimulatedData simulate(int count, int run) const override {
    Message message = from_owner(run, [&](Engine& engine, int own, Message& to) {
      const SimulatedData made = engine.simulate(count, own);
      to.put(made.z.rows());
      to.put_list(std::span<const double>(made.z.view().flat()));
      to.put(made.data);
    });
    const int rows = message.take<int>();
    const std::vector<double> z = message.take_list<double>();
    SimulatedData made{Matrix<double>(rows, rows == 0 ? 0 : static_cast<int>(z.size()) / rows), {}};
    std::ranges::copy(z, made.z.view().flat().begin());
    made.data = message.take_data();
    return made;
  }
  TrainState save(int run) const override {
    const auto write = [](Engine& engine, int own, Message& to) { to.put(engine.save(own)); };
    Message message = from_owner(run, write, Reach::rank_0);
    return message.bytes().empty() ? TrainState{} : message.take_state();
  }
  void restore(const TrainState& state, int run) override {
    from_owner(run, [&](Engine& engine, int own, Message&) { engine.restore(state, own); });
    iteration_ = state.iteration;
    step_size_[checked(run)] = state.step_size;
    failure_[checked(run)].clear();
  }

 private:
  enum class Reach { all, rank_0 };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t checked(int run) const {
    if (run < 0 || run >= runs()) throw InputError(detail::format("there is no run {} among {} runs", run, runs()));
    return index(run);
  }
  int first_of(int rank) const { return std::min(rank * per_rank_, runs()); }
  bool owns(int run) const { return run >= own_.begin && run < own_.end; }

  // All ranks learn what became of all runs. Ranks without a sound run wait while the others compute.
  void tell_all(std::span<TrainMetrics> metrics) {
    std::vector<News> news(metrics.size());
    for (int run = own_.begin; run < own_.end; ++run) {
      News& own = news[index(run)];
      own.metrics = metrics[index(run)];
      own.step_size = engine_->step_size(run - own_.begin);
      engine_->failure(run - own_.begin).copy(own.failure.data(), own.failure.size() - 1);
    }
    std::vector<std::size_t> bounds;
    for (int rank = 0; rank <= ranks_.size(); ++rank) bounds.push_back(index(first_of(rank)) * sizeof(News));
    ranks_.gather(std::as_writable_bytes(std::span(news)), bounds, Patience::unlimited);
    for (std::size_t run = 0; run < news.size(); ++run) {
      metrics[run] = news[run].metrics;
      step_size_[run] = news[run].step_size;
      failure_[run] = news[run].failure.data();
    }
  }

  // The owner of a run writes a message for all ranks, or for rank 0 and itself; others then get an empty one. If the
  // owner throws, all ranks throw the same.
  template <class Write>
  Message from_owner(int run, Write write, Reach reach = Reach::all) const {
    checked(run);
    const int owner = run / per_rank_;
    Message message;
    struct {
      Ending ending = Ending::good;
      std::size_t size = 0;  // of the message that follows
    } header;
    if (owns(run)) {
      header.ending = ending_of([&] { write(*engine_, run - own_.begin, message); }, message, ranks_);
      header.size = message.bytes().size();
    }
    ranks_.broadcast(std::as_writable_bytes(std::span(&header, 1)), owner, Patience::unlimited);
    const bool all = reach == Reach::all || header.ending != Ending::good;
    if (!owns(run) && (all || ranks_.rank() == 0)) message = Message(std::vector<std::byte>(header.size));
    if (all)
      ranks_.broadcast(message.bytes(), owner, Patience::unlimited);
    else if (owner > 0)
      pass_to_rank_0(message.bytes(), owner);
    if (header.ending != Ending::good) throw_again(header.ending, message);
    return message;
  }

  void pass_to_rank_0(std::span<std::byte> bytes, int from) const {
    constexpr std::size_t largest = std::size_t{1} << 26;  // of one message; ranks have a limit
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), largest))) {
      const std::span<std::byte> part = bytes.first(std::min(bytes.size(), largest));
      if (ranks_.rank() == from) ranks_.send(part, 0);
      if (ranks_.rank() == 0) ranks_.receive(part, from);
    }
    ranks_.broadcast({}, 0, Patience::unlimited);  // from now on the bytes may change
  }

  Ranks& ranks_;
  int per_rank_;                      // runs; the last ranks may have fewer
  std::vector<double> step_size_;     // one per run
  std::vector<std::string> failure_;  // one per run; empty: sound
  ItemRange own_;                     // runs of this rank
  std::unique_ptr<Engine> engine_;    // of them; null: there are none
  std::uint32_t iteration_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_whole_runs(const std::vector<std::uint64_t>& seeds, double step_size, Ranks& ranks,
                                        const MakeOwnRuns& make) {
  return std::make_unique<WholeRuns>(seeds, step_size, ranks, make);
}

}  // namespace hone
