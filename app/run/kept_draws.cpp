#include "app/run/kept_draws.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone {
namespace {

constexpr int long_chains = 8;  // as many as super-chains of a posterior with one mode
constexpr int least_long_chains = 4;

// The short chains of each long one.
std::vector<std::vector<int>> gathered(const RefinedDraws& refined, int count_of_groups) {
  const int chains = refined.states.chains, from_q = std::min(chains, refined.zt.cols()), supers = chains - from_q;
  std::vector<int> order(static_cast<std::size_t>(chains));
  std::iota(order.begin(), order.end(), 0);
  if (supers == 0 && !refined.checks.crosses_modes)
    std::ranges::stable_sort(order, {}, [&](int c) { return refined.component[static_cast<std::size_t>(c)]; });
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(std::min(count_of_groups, chains)));
  const auto deal = [&](int begin, int count) {
    for (int i = 0; i < count; ++i)
      groups[static_cast<std::size_t>(i) * groups.size() / static_cast<std::size_t>(count)].push_back(
          order[static_cast<std::size_t>(begin + i)]);
  };
  deal(0, from_q);
  deal(from_q, supers);
  return groups;
}

// With `count` long chains, or fewer where there are not as many short ones.
KeptDraws kept_in(int count, const RefinedDraws& refined, int most) {
  const int each = refined.states.per_chain();
  const std::vector<std::vector<int>> groups = gathered(refined, count);
  KeptDraws kept;
  kept.chains = static_cast<int>(groups.size());
  const int smallest =
      static_cast<int>(std::ranges::min(groups, {}, [](const auto& group) { return group.size(); }).size());
  const auto states = [&](int short_ones) { return std::clamp(most / (short_ones * kept.chains), 1, each); };
  int short_ones = std::clamp(most / std::min(4, each) / kept.chains, 1, smallest);
  if (short_ones < smallest)  // fewer of them may come closer to `most`
    for (int n = short_ones; 2 * n >= short_ones; --n)
      if (n * states(n) > short_ones * states(short_ones)) short_ones = n;
  kept.short_chains = kept.chains * short_ones;
  const int own = states(short_ones);
  for (const std::vector<int>& group : groups)
    for (int i = 0; i < short_ones; ++i) {
      const int chain = group[static_cast<std::size_t>(i) * group.size() / static_cast<std::size_t>(short_ones)];
      for (int s = 0; s < own; ++s) {
        kept.cols.push_back(chain * each + (s + 1) * each / own - 1);
        kept.short_chain.push_back(chain);
      }
    }
  return kept;
}

}  // namespace

// Eight long chains, or fewer if `most` is too small for all short chains and fewer long ones come closer to it.
KeptDraws kept_draws(const RefinedDraws& refined, int most) {
  KeptDraws best = kept_in(long_chains, refined, most);
  if (best.short_chains > refined.states.chains - long_chains) return best;  // all short chains are there
  for (int count = long_chains - 1; count >= least_long_chains; --count) {
    KeptDraws other = kept_in(count, refined, most);
    if (other.cols.size() > best.cols.size()) best = std::move(other);
  }
  return best;
}

}  // namespace hone
