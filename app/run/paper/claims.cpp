#include "app/run/paper/claims.hpp"

#include <fmt/format.h>

#include <array>

#include "app/data/load.hpp"
#include "app/run/json.hpp"
#include "app/run/paper/configs.hpp"
#include "app/run/paper/pace.hpp"
#include "hone/assess/divergence.hpp"
#include "hone/base/error.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/toys.hpp"

namespace hone {
namespace {

constexpr double seconds_per_gradient = 1e-7;  // of a toy, with its share of everything else

double toy_seconds(double iterations, int steps) { return iterations * (5.0 * steps + 10) * seconds_per_gradient; }

// A toy fit. It may fail, and that is a result too.
Cell toy_cell(const std::string& id, ToyConfig config) {
  resolve(config);
  const auto run = [config](const RunFolder& folder) {
    try {
      run_toy(config, &folder, nullptr);
    } catch (const InputError&) {
      throw;
    } catch (const Error& error) {
      folder.write("summary.json", Json{{"failure", error.what()}}.dump(2) + "\n");
    }
  };
  return {.id = id,
          .config = toy_settings(config).to_toml(),
          .run = run,
          .seconds = toy_seconds(*config.iterations, config.steps) * config.draws_per_iteration};
}

// What is measured of one gradient estimator with one draw.
struct GradientMoments {
  Moments variance;          // summed over θ; one value per batch
  std::vector<double> mean;  // one value per element of θ
};

GradientMoments measure_gradient(const GaussianFamily& start, const ObjectiveConfig& objective, int steps,
                                 double step_size, int draws) {
  constexpr int batches = 20, warm_up = 100;
  GaussianFamily q = start;
  const auto target = make_toy(Toy::gaussian);
  const PhiloxSource random(1);
  FitConfig config;
  config.objective = make_objective(objective);
  config.refine = {.steps = steps, .adapt = Adapt::off, .step_size = step_size, .acceptance = 0.7};
  config.optimizer.rate_location = config.optimizer.rate_scale = 0;  // θ does not move
  Fit fit(*target, q, config, random);
  for (int i = 0; i < warm_up; ++i) fit.step();  // warms up the control variate
  GradientMoments results;
  const std::size_t size = fit.ascent().size();
  std::vector<Moments> all(size);
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<Moments> here(size);
    for (int i = 0; i < draws / batches; ++i) {
      fit.step();
      for (std::size_t k = 0; k < size; ++k) {
        here[k].add(fit.ascent()[k]);
        all[k].add(fit.ascent()[k]);
      }
    }
    double sum = 0;
    for (const Moments& moments : here) sum += moments.variance();
    results.variance.add(sum);
  }
  for (const Moments& moments : all) results.mean.push_back(moments.mean());
  return results;
}

void measure_gradients(const std::string& q_name, int steps, int draws, const std::string& text,
                       const RunFolder& folder) {
  GaussianFamily q(2, Covariance::diagonal);
  const bool start = q_name == "start";
  q.mean()[0] = start ? 1 : 0;
  q.mean()[1] = start ? -1 : 0;
  set_isotropic(Covariance::diagonal, start ? 0.1 : 0.56, q.scale());  // the toy's start, or the optimum of the VCD
  const auto target = make_toy(Toy::gaussian);
  const RefineConfig aim{.steps = steps, .adapt = Adapt::between, .step_size = 0.25, .acceptance = 0.7};
  const double step_size = tuned_step_size(*target, q, Hmc(), aim, PhiloxSource(1));
  Json json = {{"q", q_name}, {"steps", steps}, {"draws", draws}, {"step_size", step_size}};
  const auto add = [&](const char* name, BaselineKind baseline, Estimator estimator) {
    ObjectiveConfig objective;
    objective.baseline = baseline;
    objective.estimator = estimator;
    const GradientMoments results = measure_gradient(q, objective, steps, step_size, draws);
    const Estimate variance = results.variance.estimate();
    json[name] = {{"variance", variance.mean}, {"variance_se", variance.se}, {"mean", results.mean}};
  };
  add("without", BaselineKind::none, Estimator::full);
  add("with", BaselineKind::global, Estimator::full);
  add("large_t", BaselineKind::none, Estimator::large_t);
  folder.write("config.toml", text);
  folder.write("summary.json", json.dump(2) + "\n");
}

}  // namespace

std::vector<ToyRun> alpha_runs(Scale scale, const std::vector<std::uint64_t>& seeds) {
  const ScaleSettings s = settings_of(scale);
  std::vector<ToyRun> runs;
  for (const std::string mixing : {"slow", "slow-16", "mixing"})
    for (const double alpha : {0.0, 0.25, 0.5, 0.75, 0.9, 1.0})
      for (const std::uint64_t seed : seeds_or(seeds, s.toy_seeds)) {
        ToyConfig config;
        config.objective.alpha = alpha;
        const bool slow = mixing != "mixing";
        config.adapt = slow ? Adapt::off : Adapt::between;
        if (slow) config.step_size = 0.002;  // a refinement moves z by hundredths
        if (mixing == "slow-16") config.draws_per_iteration = 16;
        config.iterations = s.toy_iterations;
        config.seed = seed;
        runs.push_back({mixing, alpha, config.steps, seed,
                        toy_cell(fmt::format("claim-alpha-{}-{}-seed{}", mixing, alpha, seed), config)});
      }
  return runs;
}

std::vector<ToyRun> li2017_runs(Scale scale, const std::vector<std::uint64_t>& seeds) {
  const ScaleSettings s = settings_of(scale);
  std::vector<ToyRun> runs;
  for (const std::string objective : {"li2017", "vcd"})
    for (const int steps : {1, 2, 4, 8, 16, 32})
      for (const std::uint64_t seed : seeds_or(seeds, s.toy_seeds)) {
        ToyConfig config;
        config.objective.kind = objective == "vcd" ? ObjectiveKind::vcd : ObjectiveKind::li2017;
        config.adapt = Adapt::between;
        config.steps = steps;
        config.iterations = s.toy_iterations;
        config.seed = seed;
        runs.push_back({objective, 1, steps, seed,
                        toy_cell(fmt::format("claim-li2017-{}-t{}-seed{}", objective, steps, seed), config)});
      }
  return runs;
}

std::vector<GradientPoint> gradient_points(Scale scale) {
  const int draws = settings_of(scale).gradient_draws;
  std::vector<GradientPoint> points;
  for (const std::string q : {"start", "fitted"})
    for (const int steps : {1, 2, 4, 8, 16, 32, 64}) {
      const std::string text = fmt::format("q = \"{}\"\nsteps = {}\ndraws = {}\n", q, steps, draws);
      const auto run = [=](const RunFolder& folder) { measure_gradients(q, steps, draws, text, folder); };
      points.push_back(
          {q, steps, {fmt::format("claim-gradient-{}-t{}", q, steps), text, run, 3 * toy_seconds(draws, steps)}});
    }
  return points;
}

LocalBaselineCells local_baseline_cells(const TrainingChoice& choice, const std::string& data) {
  const ScaleSettings s = settings_of(choice.scale);
  const auto cell = [&](const std::string& name, std::uint32_t shared_until) {
    TrainRunConfig config = paper_config("lmf-fashion-vcd");
    config.data = data;
    config.binarization = Binarization::automatic;
    config.train.shared_until = shared_until;
    config.iterations = s.claim_training_iterations;
    config.report_every = std::max(1u, config.iterations / 20);
    config.engine = choice.engine;
    config.threads = choice.threads;
    resolve(config);
    return TrainingCell{.id = fmt::format("claim-local-{}-{}", name, config.iterations),
                        .config = config,
                        .seeds = seeds_or(choice.seeds, s.training_seeds),
                        .evaluation = {}};
  };
  return {cell("from-start", 0), cell("shared-first", std::min(3000u, s.claim_training_iterations / 2))};
}

std::vector<SecondsPoint> seconds_points(Scale scale, const std::string& data, const TimingOptions& options) {
  const std::uint32_t iterations = settings_of(scale).claim_timed_iterations;
  std::vector<SecondsPoint> points;
  for (const std::string model : {"lmf", "vae"}) {
    std::vector<TrainRunConfig> configs;
    std::string text = fmt::format("# timed in turns: {} iterations of each\n", iterations);
    double seconds = 0;
    for (const std::string objective : {"vcd", "hoffman"}) {
      TrainRunConfig config = paper_config(fmt::format("{}-fashion-{}", model, objective));
      config.data = data;
      config.binarization = Binarization::automatic;
      config.engine = EngineKind::cpu;
      config.threads = 1;
      resolve(config);
      text += text.empty() ? train_settings(config).to_toml() : "# and the same with objective = '" + objective + "'\n";
      if (options.pace) seconds += options.pace->seconds_per_iteration(config, 1) * iterations;
      configs.push_back(config);
    }
    const auto run = [=](const RunFolder& folder) {
      const auto timings = time_in_turns(configs, options.load(data).train, iterations, options.stop);
      const Json json = {
          {"iterations", timings[0].iterations}, {"vcd", timings[0].seconds}, {"hoffman", timings[1].seconds}};
      folder.write("config.toml", text);
      folder.write("summary.json", json.dump(2) + "\n");
    };
    points.push_back({model, {.id = "claim-seconds-" + model, .config = text, .run = run, .seconds = seconds}});
  }
  return points;
}

}  // namespace hone
