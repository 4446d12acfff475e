// Ranks share the work of the cpu engine, and the bits are those of one process. Here ranks are threads; tests/mpi has
// processes.

#include <gtest/gtest.h>

#include <new>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/engine/lead.hpp"
#include "hone/engine/whole_runs.hpp"
#include "hone/objective/kl.hpp"
#include "hone/objective/li2017.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 20, points = 130;

DataSet made_up_data(bool binary = true) {
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  if (!binary) return DataSet(std::move(values), ImageShape{4, 5});
  for (double& x : values) x = x < 0.4;
  return binary_data(values, pixels);
}

TrainConfig small() {
  TrainConfig config;
  config.model = {.latent = 3, .hidden = {7, 5}, .encoder_hidden = {6}};
  config.objective = std::make_shared<Vcd>(VcdConfig{.ramp = {.from = 2, .until = 9}, .score_bound = 3});
  config.shared_until = 5;
  config.refine.steps = 2;
  config.batch = 15;
  return config;
}

// What an engine has learned and finds after some iterations.
struct Found {
  TrainState state;
  RawMoments elbo, vcd, acceptance;
  std::vector<double> evaluated, annealed;
};

Found found_by(Engine& engine, const DataSet& data) {
  TrainMetrics metrics;
  engine.train(12, metrics);
  Found found{engine.save(), metrics.elbo.raw(), metrics.vcd.raw(), metrics.acceptance.raw(), {}, {}};
  const EvaluationConfig evaluation{.samples = 30, .burn_in = 3, .kept = 3, .points = 120};
  for (const PointEvaluation& point : engine.evaluate(data, evaluation, {}, 0)) {
    found.evaluated.push_back(point.mixture.log_likelihood);
    if (point.exact) found.evaluated.push_back(*point.exact);
  }
  const SimulatedData simulated = engine.simulate(70);
  const AnnealingTask task{.config = {.steps = 5, .chains = 2}, .points = {}, .posterior_draws = simulated.z};
  for (const AnnealedPoint& point : engine.anneal(simulated.data, task, {}, 0))
    found.annealed.push_back(point.estimate.log_likelihood);
  return found;
}

void expect_equal(const RawMoments& a, const RawMoments& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.squares, b.squares);
}

void expect_equal(const Found& a, const Found& b) {
  expect_same(a.state, b.state);
  expect_equal(a.elbo, b.elbo);
  expect_equal(a.vcd, b.vcd);
  expect_equal(a.acceptance, b.acceptance);
  EXPECT_EQ(a.evaluated, b.evaluated);
  EXPECT_EQ(a.annealed, b.annealed);
}

void expect_same_on_ranks(const TrainConfig& config, const DataSet& data) {
  const auto alone = found_by(*make_engine(EngineKind::cpu, config, data), data);
  for (const int size : {2, 3, 4, 7})
    ThreadRanks::run(size, [&](Ranks& ranks) {
      const int threads = 1 + ranks.rank() % 2;
      const auto engine = make_engine(EngineKind::automatic, config, data, {.threads = threads}, {.ranks = &ranks});
      expect_equal(alone, found_by(*engine, data));
    });
}

TEST(EngineRanks, HaveTheBitsOfOneProcess) {
  const DataSet data = made_up_data();
  TrainConfig config = small();
  expect_same_on_ranks(config, data);
  config.refine.adapt = Adapt::between;
  config.optimizer = OptimizerKind::rmsprop;
  config.precision = Precision::float64;
  expect_same_on_ranks(config, data);
  config.batch = 3;  // fewer than ranks
  expect_same_on_ranks(config, data);
  config.step_scale = StepScale::q;  // q's deviations of all columns
  expect_same_on_ranks(config, data);
  config.step_scale = StepScale::same;
  config.objective = std::make_shared<Kl>();
  expect_same_on_ranks(config, data);
  config.objective = std::make_shared<Vcd>(VcdConfig{.first_term = FirstTerm::score, .entropy = Entropy::sampled});
  config.baseline = LatentBaseline::global;
  expect_same_on_ranks(config, data);
  config.objective = std::make_shared<Li2017>();
  expect_same_on_ranks(config, data);
}

TEST(EngineRanks, OtherModels) {
  TrainConfig config = small();
  config.model = {.kind = ModelKind::gaussian_mf, .latent = 4, .hidden = {}, .encoder_hidden = {}};
  expect_same_on_ranks(config, made_up_data(false));
  config.model.kind = ModelKind::logistic_mf;
  expect_same_on_ranks(config, made_up_data());
}

// A block of the gradient is 128 KiB: this one has several.
TEST(EngineRanks, LargeGradientsTravelInBlocks) {
  TrainConfig config = small();
  config.model.hidden = {200, 200};
  expect_same_on_ranks(config, made_up_data());
}

TEST(EngineRanks, RefuseWhatNeedsAllDrawsInOneProcess) {
  class Own final : public Objective {
   public:
    std::unique_ptr<Objective> clone() const override { return std::make_unique<Own>(); }
    bool refines() const override { return false; }
    void add_ascent(const Family&, const Evidence&, std::span<double>) override {}
  };
  TrainConfig config = small();
  config.objective = std::make_shared<Own>();
  const DataSet data = made_up_data();
  ThreadRanks::run(2, [&](Ranks& ranks) {
    EXPECT_THROW(make_engine(EngineKind::cpu, config, data, {}, {.ranks = &ranks}), InputError);
    EXPECT_THROW(make_engine(EngineKind::cuda, small(), data, {}, {.ranks = &ranks}), KeyError);
  });
}

// Rank 0 calls an engine; the others follow with the data that it sends.
TEST(EngineRanks, FollowRankZero) {
  for (const bool binary : {true, false}) {
    TrainConfig config = small();
    if (!binary) config.model = {.kind = ModelKind::gaussian_mf, .latent = 4, .hidden = {}, .encoder_hidden = {}};
    const DataSet data = made_up_data(binary);
    const auto alone = make_engine(EngineKind::cpu, config, data);
    const Found found = found_by(*alone, data), later = found_by(*alone, data);
    ThreadRanks::run(3, [&](Ranks& ranks) {
      const MakeEngine make = [&](const std::string& recipe, const DataSet& train, Ranks& given) {
        if (recipe == "impossible") throw InputError("no such engine");
        if (recipe == "impossible on rank 2" && ranks.rank() == 2) throw Error("no memory");
        return make_engine(EngineKind::cpu, config, train, {}, {.ranks = &given});
      };
      if (ranks.rank() > 0) return follow(ranks, make);
      Lead lead(ranks, make);
      {
        const auto engine = lead.engine("usual", data), other = lead.engine("usual", data);
        expect_equal(found, found_by(*engine, data));
        other->restore(found.state);
        expect_equal(later, found_by(*other, data));
        EXPECT_THROW(other->restore({}), InputError);
        const auto stop = [](int) { throw Stopped(); };
        EXPECT_THROW(engine->evaluate(data, {.samples = 30, .burn_in = 3, .kept = 3, .points = {}}, stop), Stopped);
        EXPECT_THROW(lead.engine("impossible", data), InputError);
        try {
          lead.engine("impossible on rank 2", data);
          ADD_FAILURE() << "an engine on two of three ranks";
        } catch (const Error& error) {
          EXPECT_STREQ(error.what(), "rank 2 on host here: no memory");
        }
      }
      EXPECT_TRUE(lead.in_step());
      lead.end();
    });
  }
}

// The kind of error and its text; empty: none.
std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Stopped& error) {
    return std::string("Stopped: ") + error.what();
  } catch (const KeyError& error) {
    return "KeyError: " + error.key() + ", " + error.message();
  } catch (const DataError& error) {
    return std::string("DataError: ") + error.what();
  } catch (const InputError& error) {
    return std::string("InputError: ") + error.what();
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  }
}

// Several runs: each is trained whole by one rank, with the bits that it has alone, and rank 0 hears of all.
TEST(EngineRanks, TrainWholeRuns) {
  const DataSet data = made_up_data();
  const TrainConfig config = small();
  const std::vector<std::uint64_t> seeds = {3, 1, 7, 9, 12};
  const auto alone = make_engine(EngineKind::cpu, config, data, {.seeds = seeds});
  std::vector<TrainMetrics> expected(seeds.size());
  alone->train(4, expected);
  const TrainState after_four = alone->save(1);
  alone->train(3, expected);
  const EvaluationConfig evaluation{.samples = 30, .burn_in = 3, .kept = 3, .points = 60};
  const auto evaluated = alone->evaluate(data, evaluation, {}, 3);
  const SimulatedData simulated = alone->simulate(6, 2);
  const AnnealingTask task{.config = {.steps = 5, .chains = 2}, .points = {}, .posterior_draws = simulated.z};
  const auto annealed = alone->anneal(simulated.data, task, {}, 4);
  for (const int size : {2, 3, 5, 7})
    ThreadRanks::run(size, [&](Ranks& ranks) {
      const MakeEngine make = [&](const std::string&, const DataSet& train, Ranks& given) {
        return make_engine(EngineKind::cpu, config, train, {.seeds = seeds}, {.ranks = &given});
      };
      if (ranks.rank() > 0) return follow(ranks, make);
      Lead lead(ranks, make);
      {
        const auto engine = lead.engine("", data);
        ASSERT_EQ(engine->runs(), 5);
        EXPECT_EQ(engine->step_size(4), config.refine.step_size);
        std::vector<TrainMetrics> metrics(seeds.size());
        engine->train(4, metrics);
        expect_same(after_four, engine->save(1));
        engine->train(3, metrics);
        for (int run = 0; run < 5; ++run) {
          expect_equal(expected[run].elbo.raw(), metrics[run].elbo.raw());
          expect_equal(expected[run].vcd.raw(), metrics[run].vcd.raw());
          EXPECT_EQ(engine->step_size(run), alone->step_size(run));
          EXPECT_EQ(engine->failure(run), "");
          expect_same(alone->save(run), engine->save(run));
        }
        EXPECT_EQ(engine->evaluate(data, evaluation, {}, 3).at(59).mixture.log_likelihood,
                  evaluated.at(59).mixture.log_likelihood);
        EXPECT_TRUE(std::ranges::equal(engine->simulate(6, 2).z.view().flat(), simulated.z.view().flat()));
        EXPECT_EQ(engine->anneal(simulated.data, task, {}, 4).at(5).estimate.log_likelihood,
                  annealed.at(5).estimate.log_likelihood);
        for (int run = 0; run < 5; ++run) {
          EXPECT_EQ(thrown_by([&] { engine->restore({}, run); }), thrown_by([&] { alone->restore({}, run); }));
        }
        EXPECT_EQ(thrown_by([&] { engine->train(1, std::span(metrics).first(4)); }),
                  "InputError: 5 runs need metrics for each of them, not 4");
        EXPECT_THROW(engine->save(5), InputError);
        const auto other = lead.engine("", data);
        for (int run = 0; run < 5; ++run) other->restore(run == 1 ? after_four : engine->save(run), run);
        expect_same(after_four, other->save(1));
      }
      EXPECT_TRUE(lead.in_step());
      lead.end();
    });
}

// One run ends, the others go on.
TEST(EngineRanks, AFailureConcernsOneOfTheWholeRuns) {
  const DataSet data = made_up_data();
  const TrainConfig config = small();
  const auto alone = make_engine(EngineKind::cpu, config, data, {.seeds = {1, 2, 3}});
  TrainState broken = alone->save(1);
  for (NamedArray& array : broken.arrays)
    if (array.name.starts_with("decoder."))
      std::visit([](auto& values) { std::ranges::fill(values, std::numeric_limits<float>::max()); }, array.values);
  ThreadRanks::run(3, [&](Ranks& ranks) {
    const auto engine = make_engine(EngineKind::cpu, config, data, {.seeds = {1, 2, 3}}, {.ranks = &ranks});
    engine->restore(broken, 1);
    std::vector<TrainMetrics> metrics(3);
    engine->train(2, metrics);
    EXPECT_EQ(engine->failure(0), "");
    EXPECT_NE(engine->failure(1).find("finite"), std::string::npos) << engine->failure(1);
    EXPECT_EQ(engine->failure(2), "");
    EXPECT_EQ(metrics[2].elbo.count(), 2);
  });
}

// A run that does nothing but fail when it is restored.
class Failing final : public Engine {
 public:
  explicit Failing(std::function<void(int)> fail) : fail_(std::move(fail)) {}
  int runs() const override { return 1; }
  std::uint32_t iteration() const override { return 0; }
  double step_size(int) const override { return 1; }
  const std::string& failure(int) const override { return failure_; }
  void train(std::uint32_t, std::span<TrainMetrics>) override {}
  std::vector<PointEvaluation> evaluate(const DataSet&, const EvaluationConfig&, const std::function<void(int)>&,
                                        int) override {
    return {};
  }
  std::vector<AnnealedPoint> anneal(const DataSet&, const AnnealingTask&, const std::function<void(int)>&,
                                    int) override {
    return {};
  }
  SimulatedData simulate(int, int) const override { return {}; }
  TrainState save(int) const override { return {}; }
  void restore(const TrainState& state, int) override { fail_(static_cast<int>(state.iteration)); }

 private:
  std::function<void(int)> fail_;
  std::string failure_;
};

// What fails on the rank that has a run fails on all of them alike, and they remain in step.
TEST(EngineRanks, AllThrowWhatTheOwnerOfARunThrows) {
  const auto fail = [](int how) {
    if (how == 0) throw Stopped();
    if (how == 1) throw KeyError("steps", "too many");
    if (how == 2) throw DataError("datum 3 is not binary");
    if (how == 3) throw InputError("the checkpoint has no array 'm'");
    if (how == 4) throw Error("the device is lost");
    if (how == 5) throw std::bad_alloc();
  };
  const auto expect_failures = [&](Engine& engine) {
    for (int run = 0; run < 3; ++run)
      for (int how = 0; how < 7; ++how) {
        TrainState state;
        state.iteration = static_cast<std::uint32_t>(how);
        const std::string there = detail::format("Error: rank {} on host here: {}", run, std::bad_alloc().what());
        EXPECT_EQ(thrown_by([&] { engine.restore(state, run); }), how == 5 ? there : thrown_by([&] { fail(how); }));
      }
  };
  ThreadRanks::run(3, [&](Ranks& ranks) {
    const MakeEngine make = [&](const std::string&, const DataSet&, Ranks& given) {
      return make_whole_runs({1, 2, 3}, 1, given, [&](const auto&) { return std::make_unique<Failing>(fail); });
    };
    expect_failures(*make("", {}, ranks));
    if (ranks.rank() > 0) return follow(ranks, make);
    Lead lead(ranks, make);
    expect_failures(*lead.engine("", {}));
    EXPECT_TRUE(lead.in_step());
    lead.end();
  });
}

// Ranks with a note of impatient gathers and of the bytes that were broadcast.
class NotingRanks final : public Ranks {
 public:
  explicit NotingRanks(Ranks& ranks) : ranks_(ranks) {}
  int limited_gathers = 0;
  std::size_t bytes_broadcast = 0;

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::string host() const override { return ranks_.host(); }
  bool sound() const override { return ranks_.sound(); }
  void broadcast(std::span<std::byte> bytes, int from, Patience patience) override {
    bytes_broadcast += bytes.size();
    ranks_.broadcast(bytes, from, patience);
  }
  void gather(std::span<std::byte> bytes, std::span<const std::size_t> bounds, Patience patience) override {
    limited_gathers += patience == Patience::limited;
    ranks_.gather(bytes, bounds, patience);
  }
  void send(std::span<const std::byte> bytes, int to) override { ranks_.send(bytes, to); }
  void receive(std::span<std::byte> bytes, int from) override { ranks_.receive(bytes, from); }
  void finish() override { ranks_.finish(); }
  void abort(int code) override { ranks_.abort(code); }

 private:
  Ranks& ranks_;
};

// A rank without a run waits as long as the iterations of the others take. A state goes to rank 0 and nowhere else.
TEST(EngineRanks, WaitForWholeRunsAndSaveThemOnRankZero) {
  const DataSet data = made_up_data();
  const TrainConfig config = small();
  const std::vector<std::uint64_t> seeds = {3, 1, 7};
  const auto alone = make_engine(EngineKind::cpu, config, data, {.seeds = seeds});
  std::vector<TrainMetrics> expected(seeds.size());
  alone->train(2, expected);
  ThreadRanks::run(4, [&](Ranks& given) {
    NotingRanks ranks(given);
    const auto engine = make_engine(EngineKind::cpu, config, data, {.seeds = seeds}, {.ranks = &ranks});
    std::vector<TrainMetrics> metrics(seeds.size());
    engine->train(2, metrics);
    EXPECT_EQ(ranks.limited_gathers, 0);
    ranks.bytes_broadcast = 0;
    for (int run = 0; run < 3; ++run) {
      const TrainState state = engine->save(run);
      if (ranks.rank() == 0 || ranks.rank() == run)
        expect_same(alone->save(run), state);
      else
        EXPECT_TRUE(state.arrays.empty());
    }
    EXPECT_LT(ranks.bytes_broadcast, 100U);
  });
}

TEST(Message, KeepsDataInTheFormInWhichTheyAreStored) {
  const std::vector<std::uint8_t> bytes = {0, 1, 7, 255, 128, 3};
  const std::vector<float> numbers = {0.1F, 2, -3};
  for (const DataSet& data :
       {DataSet(bytes, ImageShape{1, 3}, 1 / 255.0), DataSet(numbers, ImageShape{3, 1}), made_up_data()}) {
    Message message;
    message.put(data);
    const DataSet copy = message.take_data();
    ASSERT_EQ(copy.size(), data.size());
    EXPECT_EQ(copy.shape().rows, data.shape().rows);
    EXPECT_EQ(copy.binary(), data.binary());
    Matrix<float> a(data.dimension(), 1), b = a;
    for (int n = 0; n < data.size(); ++n) {
      data.expand(std::span<const int>(&n, 1), a.view());
      copy.expand(std::span<const int>(&n, 1), b.view());
      EXPECT_TRUE(std::ranges::equal(a.column(0), b.column(0)));
    }
  }
}

}  // namespace
}  // namespace hone::test
