#include "app/run/rank_pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/run/progress.hpp"

namespace hone {
namespace {

using Time = RankPaces::Time;

// Of a fresh engine: the median of three stretches, or one iteration if it takes long. The first iteration, which
// touches the memory for the first time, counts only if it takes very long.
Time pace_of(Engine& engine, const Lead& lead) {
  constexpr double long_iteration = 500, very_long = 5000, stretch = 50;
  TrainMetrics ignored;
  const auto timed = [&](std::uint32_t iterations) {
    const double before = lead.exchange_seconds();
    const Stopwatch watch;
    engine.train(iterations, ignored);
    const double factor = 1e3 / iterations;
    return Time{factor * watch.seconds(), factor * (lead.exchange_seconds() - before)};
  };
  const Time first = timed(1);
  if (first.all > very_long) return first;
  if (first.all > long_iteration) return timed(1);
  const auto iterations = static_cast<std::uint32_t>(std::clamp(stretch / first.all, 1.0, 100.0));
  std::array<Time, 3> paces;
  for (Time& pace : paces) pace = timed(iterations);
  std::ranges::sort(paces, {}, &Time::all);
  return paces[1];
}

}  // namespace

bool RankPaces::whole(int runs, int ranks) const {
  return runs >= ranks || (runs > 1 && alone.all <= runs * shared.all);
}

std::string RankPaces::words(int runs, int ranks) const {
  std::string text = fmt::format(
      "ranks: an iteration takes about {:.3g} ms on one rank and {:.3g} ms on {}: {:.3g} ms to compute, {:.3g} ms to "
      "exchange and wait",
      alone.all, shared.all, ranks, shared.all - shared.exchange, shared.exchange);
  if (whole(runs, ranks)) {
    text += fmt::format("\nranks: they train whole runs, {} at a time", std::min(runs, ranks));
    if (const int idle = ranks - runs; idle > 0)
      text += fmt::format("\nwarning: {} nothing to do; start fewer",
                          idle == 1 ? "1 rank has" : fmt::format("{} ranks have", idle));
  } else if (shared.all > alone.all) {
    text += "\nwarning: these ranks are slower than one; start fewer, or take a larger batch (docs/cluster.md)";
  }
  return text;
}

std::optional<RankPaces> time_ranks(Lead& lead, const std::function<std::unique_ptr<Engine>(Lead*)>& make) {
  const auto pace_on_ranks = [&]() -> std::optional<Time> {
    const std::unique_ptr<Engine> engine = make(&lead);
    if (!engine->ranks_share_iterations()) return {};
    return pace_of(*engine, lead);
  };
  const std::optional<Time> shared = pace_on_ranks();
  if (!shared) return {};
  return RankPaces{pace_of(*make(nullptr), lead), *shared};
}

std::string words(const SharedPace& pace) {
  std::string text = fmt::format(
      "ranks: a gradient takes about {:.3g} ms, and a batch of {} about {:.3g} ms on one rank and {:.3g} ms on {}: "
      "{:.3g} ms to compute, {:.3g} ms to exchange and wait",
      1e3 * pace.gradient, pace.columns, 1e3 * pace.alone, 1e3 * pace.shared, pace.ranks,
      1e3 * (pace.shared - pace.exchange), 1e3 * pace.exchange);
  if (pace.shared > pace.alone) text += "\nwarning: these ranks are slower than one; start fewer (docs/cluster.md)";
  return text;
}

}  // namespace hone
