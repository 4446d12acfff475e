#include <algorithm>
#include <cmath>

#include "hone/assess/annealing_parts.hpp"
#include "hone/engine/cuda/evaluate/chain_walk.cuh"
#include "hone/engine/cuda/evaluate/evaluate.cuh"
#include "hone/engine/cuda/train/device_layout.hpp"
#include "hone/mcmc/step_size.hpp"

namespace hone::cuda {
namespace {

constexpr int chains_at_once = 100'000;  // that move together

__global__ void draw_prior(ChainArrays all, Numbers numbers) {
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

// Some points that are annealed together: whole groups where there are so many.
class DeviceAnnealer {
 public:
  DeviceAnnealer(const AnnealingTask& task, ChainTarget target, const PointData& data, std::uint64_t seed,
                 std::uint32_t first_point)
      : task_(task),
        target_(target),
        constant_(data.constant),
        schedule_(annealing_schedule(task.config.steps)),
        first_point_(first_point),
        points_(static_cast<int>(data.constant.size())),
        groups_(ceil_div(points_, annealing_group)),
        x_(data.x),
        seed_(std::span<const std::uint64_t>(&seed, 1)),
        step_sizes_(static_cast<std::size_t>(groups_) * task.config.steps) {
    target_.x = x_.data();
  }

  // The first `wanted` of the points; `progress` hears how far they are.
  std::vector<AnnealedPoint> anneal(int wanted, const std::function<void(double)>& progress) {
    tune();
    const int each = task_.config.chains;
    Memory<double> log_weight(static_cast<std::size_t>(wanted) * each);
    Pass pass(*this, wanted, each);
    ChainWalk& walk = pass.walk;
    const Numbers numbers = numbers_of(task_.pass(), each);
    if (task_.backward())
      walk.place(draws_of(wanted, each));
    else
      draw(walk, numbers);
    walk.begin();
    const int steps = task_.config.steps;
    double beta = 1;
    for (int i = 1; i <= steps; ++i) {
      const int from = task_.backward() ? steps - i + 1 : i - 1, to = task_.backward() ? steps - i : i;
      const bool last = i == steps;
      const double next = last ? beta : schedule_[to];
      reweigh(walk, {beta, next}, std::abs(schedule_[to] - schedule_[from]), log_weight.data());
      if (last) break;
      beta = next;
      walk.set_temperature(beta);
      walk.step(numbers, sizes_at(to, each), static_cast<std::uint32_t>(to), false);
      if (progress && i % std::max(1, steps / 50) == 0) queue_.wait(), progress(static_cast<double>(i) / steps);
    }
    queue_.wait();
    return points_of(walk, log_weight.download(), wanted, each);
  }

 private:
  // Chains with the constants of their data.
  struct Pass {
    Pass(DeviceAnnealer& a, int points, int each)
        : constant(a.constants(points, each)), walk(a.target_of(constant, each), points * each, a.shape(), a.queue_) {}
    Memory<double> constant;
    ChainWalk walk;
  };

  // ε_1 … ε_(K−1) of every group, by one chain per point.
  void tune() {
    const StepSizeRule rule = annealing_step_sizes(target_.decoder.net.inputs(), task_.config.steps);
    const std::vector<double> start(groups_, rule.start);
    Memory<double> now(start);
    Memory<double> log_weight(points_);
    Pass pass(*this, points_, 1);
    ChainWalk& walk = pass.walk;
    const Numbers numbers = numbers_of(AnnealingPass::pilot, 1);
    draw(walk, numbers);
    walk.begin();
    double beta = 1;
    for (int k = 1; k < task_.config.steps; ++k) {
      reweigh(walk, {beta, schedule_[k]}, 0, log_weight.data());
      beta = schedule_[k];
      walk.set_temperature(beta);
      check(cudaMemcpyAsync(step_sizes_.data() + static_cast<std::size_t>(k) * groups_, now.data(),
                            groups_ * sizeof(double), cudaMemcpyDeviceToDevice, queue_),
            "keeping step sizes");
      walk.step(numbers, {now.data(), rule, annealing_group, 0}, static_cast<std::uint32_t>(k), true);
    }
    queue_.wait();
  }

  HmcShape shape() const { return {task_.config.leapfrog, 0}; }
  ChainTarget target_of(const Memory<double>& constant, int each) const {
    ChainTarget target = target_;
    target.constant = constant.data();
    target.chains_of_datum = each;
    return target;
  }
  std::vector<double> constants(int points, int each) const {
    std::vector<double> all;
    for (int i = 0; i < points; ++i) all.insert(all.end(), each, constant_[i]);
    return all;
  }
  Numbers numbers_of(AnnealingPass pass, int each) const {
    return {seed_.data(), nullptr, iteration_of(pass), first_point_ * static_cast<std::uint32_t>(each)};
  }
  StepSizeArrays sizes_at(int level, int each) const {
    return {step_sizes_.data() + static_cast<std::size_t>(level) * groups_, {}, annealing_group * each, 0};
  }
  std::vector<double> draws_of(int points, int each) const {  // (points · each, D)
    std::vector<double> z;
    for (int i = 0; i < points; ++i) {
      const auto draw = task_.posterior_draws.column(static_cast<int>(first_point_) + i);
      for (int c = 0; c < each; ++c) z.insert(z.end(), draw.begin(), draw.end());
    }
    return z;
  }

  void draw(const ChainWalk& walk, const Numbers& numbers) {
    const ChainArrays& c = walk.chains();
    launch(draw_prior, warps_for(c.count), queue_, "drawing from the prior", c, numbers);
  }
  void reweigh(const ChainWalk& walk, const Retemper& change, double share, double* log_weight) {
    const ChainArrays& c = walk.chains();
    launch(weigh, warps_for(c.count), queue_, "weighing chains", c, change, share, log_weight);
  }

  std::vector<AnnealedPoint> points_of(const ChainWalk& walk, const std::vector<double>& log_weight, int count,
                                       int each) const {
    std::vector<double> acceptance;
    std::vector<int> nonfinite;
    walk.copy_first_chains(count * each, acceptance, nonfinite);
    return annealed_points({log_weight, acceptance, nonfinite, each, task_.config.steps, task_.pass()});
  }

  const AnnealingTask& task_;
  ChainTarget target_;
  const std::vector<double>& constant_;
  std::vector<double> schedule_;
  std::uint32_t first_point_;
  int points_, groups_;
  Queue queue_;
  Memory<float> x_;
  Memory<std::uint64_t> seed_;
  Memory<double> step_sizes_;  // (K, groups); the first row is not used
};

}  // namespace

std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress) {
  run.model.check(data);
  hone::check(task, data.size());
  const int wanted = std::min(data.size(), task.points.value_or(data.size()));
  const int at_once = std::max(1, chains_at_once / task.config.chains / annealing_group) * annealing_group;
  std::vector<AnnealedPoint> result;
  for (int begin = 0; begin < wanted; begin += at_once) {
    const int sampled = std::min(at_once, wanted - begin);
    const int points = std::min(data.size() - begin, round_up(sampled, annealing_group));  // all of a group tune
    const PointData loaded = load_points(run.model, data, begin, points, padded_width(data.dimension()));
    const ChainTarget target{run.fixed_decoder(), nullptr, nullptr, 1};
    const auto hear = [&](double part) {
      if (progress) progress(begin + static_cast<int>(part * sampled));
    };
    const auto some =
        DeviceAnnealer(task, target, loaded, run.seed, static_cast<std::uint32_t>(begin)).anneal(sampled, hear);
    result.insert(result.end(), some.begin(), some.end());
    if (progress) progress(begin + sampled);
  }
  return result;
}

}  // namespace hone::cuda
