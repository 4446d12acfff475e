#include "hone/engine/cuda/train/trainer.cuh"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/engine/state_arrays.hpp"

namespace hone::cuda {
namespace {

constexpr std::uint32_t at_once = 32;  // in one graph: between graphs the device waits

}  // namespace

Trainer::Trainer(const TrainPlan& plan, const RunMemory& memory, const std::vector<std::uint64_t>& seeds, Ranks* ranks)
    : plan_(plan),
      memory_(memory),
      launches_(plan, memory, ranks),
      step_size_(seeds.size(), plan.config.refine.step_size),
      failure_(seeds.size()) {
  for (const std::uint64_t seed : seeds) minibatches_.push_back(permuted_minibatches(plan.data, seed));
  if (launches_.shared()) return;
  one_ = recorded(1);
  if (plan.refinement) several_ = recorded(at_once);  // by products an iteration has hundreds of kernels
}

Graph Trainer::recorded(std::uint32_t iterations) const {
  return Graph(launches_.queue(), [&] { launch_all(iterations); });
}

void Trainer::launch_all(std::uint32_t iterations) const {
  const Space slots[2] = {memory_.space().of_slot(0), memory_.space().of_slot(1)};
  launches_.prepare(slots[0]);
  for (std::uint32_t i = 0; i < iterations; ++i)
    launches_.iterate(slots[i % 2], i + 1 < iterations ? &slots[(i + 1) % 2] : nullptr);
}

void Trainer::train(std::uint32_t iterations, std::span<TrainMetrics> metrics) {
  const std::uint32_t until = plan_.config.shared_until;
  const bool local = plan_.config.baseline == LatentBaseline::local;
  const auto size_of_chunk = [&](std::uint32_t made, std::uint32_t left) {
    return std::min({left, chunk, local && made < until ? until - made : left});
  };
  const std::uint32_t usual = iterations;  // a guess at how many the next call wants
  while (iterations > 0) {
    if (local && iteration_ == until) spread_baselines();
    const std::uint32_t count = size_of_chunk(iteration_, iterations);
    iterations -= count;
    train_chunk(count, size_of_chunk(iteration_ + count, iterations > 0 ? iterations : usual), metrics);
  }
}

void Trainer::spread_baselines() {
  const Space& space = memory_.space();
  for (int run = 0; run < plan_.runs; ++run)
    for (int term = 0; term < 2; ++term)
      if (space.baseline[term])
        copy_to(memory_.of(space.baseline[term], run), std::vector<double>(plan_.data, memory_.state(run).shared[term]),
                "spreading the control variate");
}

void Trainer::train_chunk(std::uint32_t count, std::uint32_t next, std::span<TrainMetrics> metrics) {
  const std::uint32_t first = iteration_ + 1;
  const Queue& queue = launches_.queue();
  const std::size_t size = static_cast<std::size_t>(count) * plan_.config.batch;
  const std::vector<int>& indices = minibatches_from(first, count);
  for (int run = 0; run < plan_.runs; ++run) {
    check(cudaMemcpyAsync(const_cast<int*>(memory_.of(memory_.space().indices, run)), indices.data() + run * size,
                          size * sizeof(int), cudaMemcpyHostToDevice, queue),
          "copying minibatches");
    start_at(run, first);
  }
  std::uint32_t left = count;
  if (launches_.shared()) launch_all(std::exchange(left, 0));
  for (; several_ && left >= at_once; left -= at_once) several_.replay(queue);
  for (; left > 0; --left) one_.replay(queue);
  minibatches_from(first + count, next);
  queue.wait();
  iteration_ += count;
  for (int run = 0; run < plan_.runs; ++run)
    if (failure_[run].empty())
      failure_[run] =
          add_metrics(run, copy_of(memory_.of(memory_.space().metrics, run), count, "reading metrics"), metrics[run]);
}

const std::vector<int>& Trainer::minibatches_from(std::uint32_t first, std::uint32_t count) {
  if (ahead_.first == first && ahead_.count == count) return ahead_.indices;
  const std::size_t batch = plan_.config.batch;
  ahead_.first = first;
  ahead_.count = count;
  ahead_.indices.resize(minibatches_.size() * count * batch);
  for (std::size_t run = 0; run < minibatches_.size(); ++run)
    for (std::size_t i = 0; i < count; ++i)
      minibatches_[run]->fill(first + static_cast<std::uint32_t>(i),
                              std::span(ahead_.indices).subspan((run * count + i) * batch, batch));
  return ahead_.indices;
}

void Trainer::start_at(int run, std::uint32_t iteration) {
  const std::uint32_t words[2] = {iteration, iteration};  // next, chunk_first
  check(cudaMemcpyAsync(&memory_.of(memory_.space().state, run)->next, words, sizeof words, cudaMemcpyHostToDevice,
                        launches_.queue()),
        "copying minibatches");
  launches_.queue().wait();
}

std::string Trainer::add_metrics(int run, std::span<const MetricsRow> rows, TrainMetrics& m) {
  const RunState state = memory_.state(run);
  step_size_[run] = state.step_size;
  std::uint32_t made = iteration_ - static_cast<std::uint32_t>(rows.size());
  for (const MetricsRow& row : rows) {
    if (state.bad != 0 && state.bad <= made) break;
    if (row.dropped == plan_.config.batch) return not_finite("log p(x, z)", made).what();
    m.dropped_draws += row.dropped;
    m.rejected_nonfinite += row.nonfinite;
    if (row.refined && row.proposals > 0) {
      m.acceptance.add(row.acceptance / row.proposals);
      m.vcd.add(row.vcd);
    }
    if (!std::isnan(row.elbo)) m.elbo.add(row.elbo);
    ++made;
  }
  return state.bad != 0 ? not_finite("a parameter", state.bad).what() : "";
}

void Trainer::restart(int run, std::uint32_t iteration, double step_size) {
  iteration_ = iteration;
  step_size_[run] = step_size;
  failure_[run].clear();
}

}  // namespace hone::cuda
