// Replays of the authors' own code on recorded random numbers (tests/golden/{vae,logistic-mf}-*.json): fed the same
// numbers, the engine must agree with every recorded step.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/replay.hpp"

namespace hone::test {
namespace {

using nlohmann::json;

constexpr int batch = 4, latent = 3;
constexpr double tolerance = 1e-10;  // relative to 1 + |value|

void expect_close(double ours, double theirs, const std::string& what) {
  EXPECT_NEAR(ours, theirs, tolerance * (1 + std::abs(theirs))) << what;
}

// Numbers of the authors' matrices, row after row.
std::vector<double> flat(const json& rows) {
  std::vector<double> all;
  for (const json& row : rows) {
    if (!row.is_array()) return rows.get<std::vector<double>>();
    for (const double x : row) all.push_back(x);
  }
  return all;
}

void expect_close(std::span<const double> ours, const json& theirs, const std::string& what) {
  const std::vector<double> expected = flat(theirs);
  ASSERT_EQ(ours.size(), expected.size()) << what;
  for (std::size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], expected[i], what);
}

// The order of use: the noise of z0, then for each HMC step the momenta and the uniforms; one row per datum.
ReplaySource recorded(const json& replay, bool refines) {
  std::vector<json> calls;
  for (const json& call : replay["draws"])
    if (call["call"] != "randperm") calls.push_back(call["value"]);
  ReplaySource source;
  std::size_t next = 0;
  const auto take = [&](Purpose purpose, std::uint32_t iteration, std::uint32_t step) {
    const json& value = calls.at(next++);
    for (std::uint32_t c = 0; c < batch; ++c) {
      const json& row = value[c];
      source.record({purpose, iteration, c, step},
                    row.is_array() ? row.get<std::vector<double>>() : std::vector<double>{row});
    }
  };
  for (std::uint32_t it = 1; it <= replay["iters"]; ++it) {
    take(Purpose::draw, it, 0);
    for (std::uint32_t step = 0; refines && step < 5; ++step) {
      take(Purpose::momentum, it, step);
      take(Purpose::accept, it, step);
    }
  }
  EXPECT_EQ(next, calls.size());
  return source;
}

const std::vector<std::pair<std::string, std::string>> networks = {
    {"vae", "decoder"}, {"netMu", "mean"}, {"netSigma", "sd"}};

// Calls do(name of our tensor, the authors' numbers) for every tensor; they list layers from the output to the input.
template <class Do>
void for_tensors(const json& parameters, Do&& work) {
  for (const auto& [theirs, ours] : networks) {
    const json& layers = parameters[theirs];
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string index = "[" + std::to_string(layers.size() - 1 - l) + "]";
      work(ours + ".weight" + index, layers[l]["W"]);
      work(ours + ".bias" + index, layers[l]["b"]);
    }
  }
}

TrainConfig config_of(const json& replay, const SomeObjective& objective) {
  const bool vae = replay["init"]["vae"].size() > 1;
  TrainConfig config = TrainConfig::paper();
  config.model = {vae ? ModelKind::vae : ModelKind::logistic_mf,
                  latent,
                  vae ? std::vector{4, 5} : std::vector<int>{},
                  {4, 5},
                  Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.objective = objective;
  config.shared_until = 3;
  config.refine = {.steps = 5, .adapt = Adapt::inside, .step_size = 0.5 / 3, .acceptance = 0.9, .adapting = 3};
  config.batch = batch;
  config.decay_every = 4;
  config.precision = Precision::float64;
  return config;
}

// The quantities of an iteration that are compared.
struct Observed {
  std::vector<double> log_p0, refined_value, zt;
  std::vector<bool> accepted;
  std::map<std::string, std::vector<double>> gradient;

  void operator()(const IterationView& view) {
    log_p0 = view.evidence.log_p0;
    const Chains& refined = view.evidence.refined;
    refined_value = refined.value;
    zt.assign(refined.z.view().flat().begin(), refined.z.view().flat().end());
    accepted.clear();
    for (const Outcome outcome : refined.outcome) accepted.push_back(outcome == Outcome::accepted);
    const std::vector<double> all = widened(view.gradient);
    for (const Tensor& tensor : view.tensors) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      gradient[tensor.name].assign(from, from + static_cast<std::ptrdiff_t>(tensor.size()));
    }
  }
};

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

class GoldenModels : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    const auto [model, name] = GetParam();
    objective_ = objective_named(name);
    std::ifstream file(std::string(HONE_SOURCE_DIR "/tests/golden/") + model + "-" + name + ".json");
    replay_ = json::parse(file);
  }

  std::unique_ptr<Engine> start(const DataSet& data, const RandomSource& random, Observed& observed) const {
    std::vector<std::vector<int>> batches;
    for (const json& step : replay_["trace"]) {
      batches.push_back(step["block"]);
      for (int& datum : batches.back()) --datum;
    }
    EngineOptions options;
    options.random = &random;
    options.minibatches = std::make_unique<ReplayedMinibatches>(batches);
    auto engine =
        make_cpu_engine(config_of(replay_, objective_), data, std::move(options), {.observe = std::ref(observed)});
    TrainState state = engine->save();
    for_tensors(replay_["init"], [&](const std::string& name, const json& values) {
      ASSERT_EQ(array_of<double>(state, name).size(), flat(values).size()) << name;
      array_of<double>(state, name) = flat(values);
    });
    engine->restore(state);
    return engine;
  }

  void compare(const json& step, const Observed& observed, const TrainMetrics& metrics, Engine& engine) const {
    const bool refines = objective_->refines(), vcd = objective_->name() == "vcd";
    const std::string output = config_of(replay_, objective_).model.hidden.empty() ? "[0]" : "[2]";
    expect_close(observed.log_p0, step["logpxz"], "logpxz");
    expect_close(metrics.elbo.mean(), step["ELBO"], "ELBO");
    expect_close(mean(refines ? observed.refined_value : observed.log_p0), step["loglik_qt"], "loglik_qt");
    expect_close(engine.step_size(), step["eps"], "eps");
    expect_close(observed.gradient.at("decoder.weight" + output), step["grad_vae_W1"], "grad_vae_W1");
    expect_close(observed.gradient.at("mean.weight[2]"), step["grad_mu_W1"], "grad_mu_W1");
    expect_close(observed.gradient.at("sd.weight[2]"), step["grad_sigma_W1"], "grad_sigma_W1");
    if (vcd) expect_close(metrics.vcd.mean(), step["vcd"], "vcd");  // the authors record it for this objective alone
    TrainState state = engine.save();
    if (vcd) expect_close(array_of<double>(state, "baseline.second"), step["C"], "C");
    for (const NamedArray& array : state.arrays)
      EXPECT_EQ(array.name.starts_with("baseline"), array.name == "baseline.second" && vcd) << array.name;
    if (!refines) return;
    expect_close(observed.zt, step["zt"], "zt");
    // what became of the last proposals; earlier ones show in eps, which follows them, and in zt
    for (int c = 0; c < batch; ++c) EXPECT_EQ(observed.accepted[c], step["acc"][c].back() == 1);
  }

  SomeObjective objective_;
  json replay_;
};

TEST_P(GoldenModels, AgreesAtEveryStep) {
  const DataSet data = binary_data(flat(replay_["data"]), 6);
  const ReplaySource random = recorded(replay_, objective_->refines());
  Observed observed;
  const auto engine = start(data, random, observed);
  ASSERT_EQ(replay_["trace"].size(), 6u);
  for (const json& step : replay_["trace"]) {
    SCOPED_TRACE("iteration " + step["it"].dump());
    TrainMetrics metrics;
    engine->train(1, metrics);
    compare(step, observed, metrics, *engine);
  }
  TrainState state = engine->save();
  for_tensors(replay_["final"], [&](const std::string& name, const json& values) {
    expect_close(array_of<double>(state, name), values, name);
  });
}

INSTANTIATE_TEST_SUITE_P(Replays, GoldenModels,
                         testing::Combine(testing::Values("vae", "logistic-mf"),
                                          testing::Values("kl", "hoffman", "vcd")),
                         [](const auto& replay) {
                           const std::string model = std::get<0>(replay.param);
                           return (model == "vae" ? "vae_" : "logistic_mf_") + std::string(std::get<1>(replay.param));
                         });

}  // namespace
}  // namespace hone::test
