#include "hone/engine/whole_runs.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "hone/base/error.hpp"
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
    return from_owner(run, [](Engine& engine, int own, Message& to) { to.put(engine.save(own)); }).take_state();
  }
  void restore(const TrainState& state, int run) override {
    from_owner(run, [&](Engine& engine, int own, Message&) { engine.restore(state, own); });
    iteration_ = state.iteration;
    step_size_[checked(run)] = state.step_size;
    failure_[checked(run)].clear();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t checked(int run) const {
    if (run < 0 || run >= runs()) throw InputError(detail::format("there is no run {} among {} runs", run, runs()));
    return index(run);
  }
  int first_of(int rank) const { return std::min(rank * per_rank_, runs()); }
  bool owns(int run) const { return run >= own_.begin && run < own_.end; }

  // All ranks learn what became of all runs.
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
    ranks_.gather(std::as_writable_bytes(std::span(news)), bounds, Patience::limited);
    for (std::size_t run = 0; run < news.size(); ++run) {
      metrics[run] = news[run].metrics;
      step_size_[run] = news[run].step_size;
      failure_[run] = news[run].failure.data();
    }
  }

  // What the owner of a run writes reaches all ranks. If it throws, then all throw.
  template <class Write>
  Message from_owner(int run, Write write) const {
    constexpr std::size_t failed = std::numeric_limits<std::size_t>::max();
    checked(run);
    Message message;
    std::exception_ptr failure;
    if (owns(run)) try {
        write(*engine_, run - own_.begin, message);
      } catch (...) {
        failure = std::current_exception();
      }
    const int owner = run / per_rank_;
    std::size_t size = failure ? failed : message.bytes().size();
    ranks_.broadcast(std::as_writable_bytes(std::span(&size, 1)), owner, Patience::unlimited);
    if (failure) std::rethrow_exception(failure);
    if (size == failed) throw InputError(detail::format("rank {} could not do this for its run {}", owner, run));
    if (!owns(run)) message = Message(std::vector<std::byte>(size));
    ranks_.broadcast(message.bytes(), owner, Patience::unlimited);
    return message;
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
