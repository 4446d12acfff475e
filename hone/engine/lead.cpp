#include "hone/engine/lead.hpp"

#include <chrono>
#include <map>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/engine/whole_runs.hpp"

namespace hone {
namespace {

enum class Order : std::uint32_t { make, drop, train, evaluate, anneal, simulate, save, restore, end };

struct Header {
  Order order;
  std::uint32_t engine;
  std::size_t size;  // of the message that follows
};

void give(Ranks& ranks, Order order, std::uint32_t engine, Message message = {}) {
  Header header{order, engine, message.bytes().size()};
  ranks.broadcast(std::as_writable_bytes(std::span(&header, 1)), 0, Patience::unlimited);
  ranks.broadcast(message.bytes(), 0, Patience::unlimited);
}

}  // namespace

// The ranks, with a clock.
class Lead::TimedRanks final : public Ranks {
 public:
  explicit TimedRanks(Ranks& ranks) : ranks_(ranks) {}
  double seconds() const { return std::chrono::duration<double>(spent_).count(); }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::string host() const override { return ranks_.host(); }
  bool sound() const override { return ranks_.sound(); }
  void broadcast(std::span<std::byte> bytes, int from, Patience patience) override {
    timed([&] { ranks_.broadcast(bytes, from, patience); });
  }
  void gather(std::span<std::byte> bytes, std::span<const std::size_t> bounds, Patience patience) override {
    timed([&] { ranks_.gather(bytes, bounds, patience); });
  }
  void send(std::span<const std::byte> bytes, int to) override {
    timed([&] { ranks_.send(bytes, to); });
  }
  void receive(std::span<std::byte> bytes, int from) override {
    timed([&] { ranks_.receive(bytes, from); });
  }
  void finish() override { ranks_.finish(); }
  void abort(int code) override { ranks_.abort(code); }

 private:
  using Clock = std::chrono::steady_clock;
  template <class Call>
  void timed(Call call) {
    const auto begin = Clock::now();
    call();
    spent_ += Clock::now() - begin;
  }

  Ranks& ranks_;
  Clock::duration spent_{};
};

Lead::Lead(Ranks& ranks, MakeEngine make) : ranks_(std::make_unique<TimedRanks>(ranks)), make_(std::move(make)) {}

Lead::~Lead() = default;

int Lead::ranks() const { return ranks_->size(); }

double Lead::exchange_seconds() const { return ranks_->seconds(); }

bool Lead::in_step() const { return in_step_ && ranks_->sound(); }

// Tells the other ranks of every call before it makes the call.
class Lead::LedEngine final : public Engine {
 public:
  LedEngine(Lead& lead, std::uint32_t number, std::unique_ptr<Engine> engine)
      : lead_(lead), number_(number), engine_(std::move(engine)) {}
  ~LedEngine() override {
    try {
      if (lead_.in_step()) give(*lead_.ranks_, Order::drop, number_);
    } catch (const Error&) {  // the ranks are lost, and say so at their next call
    }
  }

  int runs() const override { return engine_->runs(); }
  std::string device() const override { return engine_->device(); }
  bool ranks_share_iterations() const override { return engine_->ranks_share_iterations(); }
  std::uint32_t iteration() const override { return engine_->iteration(); }
  double step_size(int run) const override { return engine_->step_size(run); }
  const std::string& failure(int run) const override { return engine_->failure(run); }
  // Every rank holds the state of a single run. Of several runs each is on a rank of its own.
  SimulatedData simulate(int count, int run) const override {
    if (runs() == 1) return engine_->simulate(count, run);
    Message message;
    message.put(run);
    message.put(count);
    return together(Order::simulate, std::move(message), [&] { return engine_->simulate(count, run); });
  }
  TrainState save(int run) const override {
    if (runs() == 1) return engine_->save(run);
    Message message;
    message.put(run);
    return together(Order::save, std::move(message), [&] { return engine_->save(run); });
  }

  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override {
    if (metrics.size() < static_cast<std::size_t>(runs()))  // the others have metrics for all, and would begin
      throw InputError(detail::format("{} runs need metrics for each of them, not {}", runs(), metrics.size()));
    Message message;
    message.put(iterations);
    together(Order::train, std::move(message), [&] { engine_->train(iterations, metrics); });
  }

  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress, int run) override {
    Message message;
    message.put(run);
    message.put(config);
    message.put(data);
    return together(Order::evaluate, std::move(message),
                    [&] { return engine_->evaluate(data, config, progress, run); });
  }

  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress, int run) override {
    Message message;
    message.put(run);
    message.put(task.config);
    message.put(task.points);
    message.put(task.first);
    message.put(task.posterior_draws.rows());
    message.put_list(std::span<const double>(task.posterior_draws.flat()));
    message.put(data);
    return together(Order::anneal, std::move(message), [&] { return engine_->anneal(data, task, progress, run); });
  }

  void restore(const TrainState& state, int run) override {
    Message message;
    message.put(run);
    message.put(state);
    together(Order::restore, std::move(message), [&] { engine_->restore(state, run); });
  }

 private:
  // All ranks find wrong input before they depend on each other, and a stop and a SharedError reach all of them. After
  // any other error they are out of step.
  template <class Call>
  auto together(Order order, Message message, Call call) const -> decltype(call()) {
    give(*lead_.ranks_, order, number_, std::move(message));
    try {
      return call();
    } catch (const InputError&) {
      throw;
    } catch (const Stopped&) {
      throw;
    } catch (const SharedError&) {
      throw;
    } catch (...) {
      lead_.in_step_ = false;
      throw;
    }
  }

  Lead& lead_;
  std::uint32_t number_;
  std::unique_ptr<Engine> engine_;
};

std::unique_ptr<Engine> Lead::engine(const std::string& recipe, const DataSet& train) {
  Message message;
  message.put(recipe);
  message.put(train);
  const std::uint32_t number = engines_++;
  give(*ranks_, Order::make, number, std::move(message));
  std::unique_ptr<Engine> made;
  std::exception_ptr failure;
  try {
    made = make_(recipe, train, *ranks_);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::string other = first_failure(*ranks_, "");
  if (failure) std::rethrow_exception(failure);
  if (!other.empty()) throw Error(other);
  return std::make_unique<LedEngine>(*this, number, std::move(made));
}

void Lead::end() { give(*ranks_, Order::end, 0); }

namespace {

// A follower has one of each engine that rank 0 made, with its data.
class Follower {
 public:
  Follower(Ranks& ranks, const MakeEngine& make) : ranks_(ranks), make_(make) {}

  bool obey() {  // false: the last order
    Header header{};
    ranks_.broadcast(std::as_writable_bytes(std::span(&header, 1)), 0, Patience::unlimited);
    Message message(std::vector<std::byte>(header.size));
    ranks_.broadcast(message.bytes(), 0, Patience::unlimited);
    if (header.order == Order::end) return false;
    try {
      carry_out(header, message);
    } catch (const InputError&) {  // rank 0 has the same error and reports it
    } catch (const Stopped&) {
    } catch (const SharedError&) {
    }
    if (!ranks_.sound()) throw Error("the connection to the other ranks is lost");
    return true;
  }

 private:
  struct Made {
    DataSet data;
    std::unique_ptr<Engine> engine;
  };

  void carry_out(const Header& header, Message& message) {
    if (header.order == Order::make) return make(header.engine, message);
    if (header.order == Order::drop) {
      made_.erase(header.engine);
      return;
    }
    Engine& engine = *made_.at(header.engine).engine;
    if (header.order == Order::train) {
      std::vector<TrainMetrics> metrics(static_cast<std::size_t>(engine.runs()));
      return engine.train(message.take<std::uint32_t>(), metrics);
    }
    const int run = message.take<int>();
    if (header.order == Order::restore) return engine.restore(message.take_state(), run);
    if (header.order == Order::save) return (void)engine.save(run);
    if (header.order == Order::simulate) return (void)engine.simulate(message.take<int>(), run);
    if (header.order == Order::evaluate) {
      const auto config = message.take<EvaluationConfig>();
      engine.evaluate(message.take_data(), config, {}, run);
      return;
    }
    AnnealingTask task{.config = message.take<AnnealingConfig>(), .points = message.take<std::optional<int>>()};
    task.first = message.take<int>();
    const int rows = message.take<int>();
    const std::vector<double> draws = message.take_list<double>();
    if (rows > 0) task.posterior_draws = {draws.data(), rows, static_cast<int>(draws.size()) / rows};
    engine.anneal(message.take_data(), task, {}, run);
  }

  void make(std::uint32_t number, Message& message) {
    std::string why;
    try {
      const std::string recipe = message.take_text();
      Made& made = made_[number];
      made.data = message.take_data();
      made.engine = make_(recipe, made.data, ranks_);
    } catch (const std::exception& error) {
      made_.erase(number);
      why = detail::format("rank {} on host {}: {}", ranks_.rank(), ranks_.host(), error.what());
    }
    first_failure(ranks_, why);
  }

  Ranks& ranks_;
  const MakeEngine& make_;
  std::map<std::uint32_t, Made> made_;
};

}  // namespace

void follow(Ranks& ranks, const MakeEngine& make) {
  Follower follower(ranks, make);
  while (follower.obey()) {
  }
}

}  // namespace hone
