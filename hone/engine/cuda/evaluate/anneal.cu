#include "hone/engine/cuda/evaluate/anneal.cuh"

#include <algorithm>
#include <cmath>

#include "hone/assess/annealing_parts.hpp"
#include "hone/mcmc/step_size.hpp"

namespace hone::cuda {
namespace {

constexpr int chains_at_once = 100'000;  // move together

__global__ void draw_prior(ChainArrays all, ChainNumbers numbers) {
  const WarpChain c(all);
  if (c.exists()) c.each_normal(numbers, Purpose::draw, 0, [&](int d, double normal) { c.z[d] = normal; });
}

// w ← w p(x | z)^share, then values and gradients of another temperature.
__global__ void weigh(ChainArrays all, Retemper change, double share, double* log_weight) {
  const WarpChain c(all);
  if (!c.exists()) return;
  double prior = 0;
  c.each_dimension([&](int d) {
    prior += log_standard_normal(c.z[d]);
    c.gradient[d] = change.gradient(c.gradient[d], c.z[d]);
  });
  prior = warp_sum(prior);
  if (c.lane != 0) return;
  log_weight[c.index] += share * change.log_likelihood(*c.value, prior);
  *c.value = change.value(*c.value, prior);
}

// Points that are annealed together: whole groups, except at the end of the data.
class DeviceAnnealer {
 public:
  DeviceAnnealer(const TrainedRun& run, const AnnealingTask& task, const PointData& data, std::uint32_t first_point)
      : decoder_(run.decoder()),
        task_(task),
        schedule_(annealing_schedule(task.config.steps)),
        first_point_(first_point),
        points_(static_cast<int>(data.constant.size())),
        groups_(ceil_div(points_, annealing_group)),
        x_(data.x),
        constant_(data.constant),
        seed_(std::span<const std::uint64_t>(&run.seed, 1)),
        step_sizes_(static_cast<std::size_t>(groups_) * task.config.steps) {}

  // The first `wanted` of the points. `progress` is told which part is done.
  std::vector<AnnealedPoint> anneal(int wanted, const std::function<void(double)>& progress) {
    tune();
    const int each = task_.config.chains, steps = task_.config.steps, count = wanted * each;
    const bool backward = task_.backward();
    const Memory<double> log_weight(count);
    ChainWalk walk(target(each), count, shape(), queue_);
    const ChainNumbers numbers = numbers_of(task_.pass(), each);
    backward ? walk.place(draws(wanted, each)) : draw(walk, numbers);
    pass(walk, backward, log_weight, [&](int k) {
      walk.step(numbers, {.step_size = level(k), .rule = {}, .group = annealing_group * each, .run = 0},
                static_cast<std::uint32_t>(k), false);
      const int done = backward ? steps - k : k;
      if (progress && done % std::max(1, steps / 50) == 0) queue_.wait(), progress(static_cast<double>(done) / steps);
    });
    return annealed_points({.log_weight = log_weight.download(),
                            .acceptance = copy_of(walk.chains().acceptance, count, "reading acceptances"),
                            .nonfinite = copy_of(walk.chains().nonfinite, count, "reading counts"),
                            .each = each,
                            .steps = steps,
                            .pass = task_.pass()});
  }

 private:
  // ε_1 … ε_(K−1) of every group, by one chain per point.
  void tune() {
    const StepSizeRule rule = annealing_step_sizes(decoder_.net.inputs(), task_.config.steps);
    const Memory<double> now(std::vector<double>(groups_, rule.start)), log_weight(points_);
    ChainWalk walk(target(1), points_, shape(), queue_);
    const ChainNumbers numbers = numbers_of(AnnealingPass::pilot, 1);
    draw(walk, numbers);
    pass(walk, false, log_weight, [&](int k) {
      check(cudaMemcpyAsync(level(k), now.data(), groups_ * sizeof(double), cudaMemcpyDeviceToDevice, queue_),
            "keeping step sizes");
      walk.step(numbers, {.step_size = now.data(), .rule = rule, .group = annealing_group, .run = 0},
                static_cast<std::uint32_t>(k), true);
    });
  }
  // Takes chains through the temperatures and weighs them; step(k) moves them at β_k.
  template <class Step>
  void pass(ChainWalk& walk, bool backward, const Memory<double>& log_weight, Step step) {
    const ChainArrays& c = walk.chains();
    double beta = 1;
    walk.begin();
    for (int i = 1, steps = task_.config.steps; i <= steps; ++i) {
      const int from = backward ? steps - i + 1 : i - 1, to = backward ? steps - i : i;
      const Retemper change{beta, i == steps ? beta : schedule_[to]};
      launch(weigh, warps_for(c.count), queue_, "weighing chains", c, change, std::abs(schedule_[to] - schedule_[from]),
             log_weight.data());
      if (i == steps) break;
      beta = change.to;
      walk.set_temperature(beta);
      step(to);
    }
    queue_.wait();
  }

  HmcShape shape() const { return {task_.config.leapfrog, 0}; }
  ChainTarget target(int each) const {
    return {.decoder = decoder_, .x = x_.data(), .constant = constant_.data(), .chains_of_datum = each};
  }
  double* level(int k) const { return step_sizes_.data() + static_cast<std::size_t>(k) * groups_; }  // its step sizes
  ChainNumbers numbers_of(AnnealingPass pass, int each) const {
    return {.seed = seed_.data(),
            .iteration = nullptr,
            .fixed_iteration = iteration_of(pass),
            .first_datum = first_point_ * static_cast<std::uint32_t>(each)};
  }
  std::vector<double> draws(int points, int each) const {  // of the posterior, (points · each, D)
    std::vector<double> z;
    for (int i = 0; i < points; ++i) {
      const auto draw = task_.posterior_draws.column(static_cast<int>(first_point_) - task_.first + i);
      for (int c = 0; c < each; ++c) z.insert(z.end(), draw.begin(), draw.end());
    }
    return z;
  }
  void draw(const ChainWalk& walk, const ChainNumbers& numbers) {
    const ChainArrays& c = walk.chains();
    launch(draw_prior, warps_for(c.count), queue_, "drawing from the prior", c, numbers);
  }

  FixedDecoder decoder_;
  const AnnealingTask& task_;
  std::vector<double> schedule_;
  std::uint32_t first_point_;
  int points_, groups_;
  Queue queue_;
  Memory<float> x_;
  Memory<double> constant_;
  Memory<std::uint64_t> seed_;
  Memory<double> step_sizes_;  // (K, groups); the first row is not used
};

}  // namespace

std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress) {
  run.model.check(data);
  hone::check(task, data.size());
  std::vector<AnnealedPoint> result(std::min(data.size(), task.points.value_or(data.size())));
  const auto say = progress_of_all(progress, run.ranks, static_cast<int>(result.size()));
  const auto found = [&](const PointData& points, int begin, int wanted) {
    const auto hear = [&](double part) {
      if (say) say(begin + static_cast<int>(part * wanted));
    };
    const auto first = static_cast<std::uint32_t>(task.first + begin);
    const auto some = DeviceAnnealer(run, task, points, first).anneal(wanted, hear);
    hear(1);
    return some;
  };
  for_parts(run, data, {run.rows_at_once(chains_at_once) / task.config.chains, annealing_group}, std::span(result),
            found);
  return result;
}

}  // namespace hone::cuda
