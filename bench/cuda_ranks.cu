// What ranks that share a minibatch cost, without MPI and on one device: ranks are threads of this process. ms per
// iteration (VCD, t = 8, L = 5, data of the paper's shape), least of five repeats.
//   cuda_ranks [HIDDEN [BATCH [RANKS]]]   HIDDEN: units of two hidden layers (1000), BATCH (5000), RANKS (2)
// Says also whether all ranks have the bits of one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "app/data/synthetic.hpp"
#include "hone/engine/cuda/runs.cuh"
#include "tests/support/thread_ranks.hpp"

namespace hone {
namespace {

constexpr int repeats = 5, iterations = 10, data_count = 20000;

double ms_per_iteration(cuda::Runs& runs) {
  double least = 1e9;
  TrainMetrics ignored;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    runs.train(iterations, {&ignored, 1});
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    least = std::min(least, spent.count() / iterations);
  }
  return least;
}

bool same(const TrainState& a, const TrainState& b) {
  bool equal = a.step_size == b.step_size && a.arrays.size() == b.arrays.size();
  for (std::size_t i = 0; equal && i < a.arrays.size(); ++i) equal = a.arrays[i].values == b.arrays[i].values;
  return equal;
}

void time_ranks(int hidden, int batch, int size) {
  TrainConfig config = TrainConfig::paper();
  config.model.hidden = config.model.encoder_hidden = {hidden, hidden};
  config.model.latent = 10;
  config.refine = {8, Adapt::inside, 0.05, 0.9, -1};
  config.batch = batch;
  const DataSet data = synthetic_data(1, 0, std::max(batch, data_count));
  const cuda::PathOptions products = {cuda::PathKind::products};
  TrainState expected;
  {
    cuda::Runs alone(config, data, {1}, products);
    std::printf("%d,%d batch %d: one rank %.3f ms\n", hidden, hidden, batch, ms_per_iteration(alone));
    expected = alone.save(0);
  }
  std::mutex mutex;
  test::ThreadRanks::run(size, [&](Ranks& ranks) {
    cuda::Runs shared(config, data, {1}, products, &ranks);
    const double ms = ms_per_iteration(shared);
    const TrainState found = shared.save(0);
    const std::lock_guard lock(mutex);
    std::printf("  rank %d of %d: %.3f ms, %s\n", ranks.rank(), size, ms,
                same(expected, found) ? "the same bits" : "OTHER BITS");
  });
}

}  // namespace
}  // namespace hone

int main(int count, char** texts) {
  const auto number = [&](int i, int otherwise) { return count > i ? std::atoi(texts[i]) : otherwise; };
  try {
    hone::time_ranks(number(1, 1000), number(2, 5000), number(3, 2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
