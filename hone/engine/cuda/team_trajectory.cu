#include <algorithm>
#include <limits>

#include "hone/engine/cuda/team_decoder.cuh"

namespace hone::cuda {
namespace {

using Halves = TeamNumbers<Math::tf32, true>;
template <Math math>
using Floats = TeamNumbers<math, false>;

template <class Numbers, int NC>
__global__ void __launch_bounds__(threads, 1)
    trajectory(const __grid_constant__ Space space, const __grid_constant__ TrajectorySpec spec, int first_run) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  wait_for_previous();
  const int blocks = spec.plan.team.blocks, team = static_cast<int>(blockIdx.x) / blocks;
  const int run = first_run + team / spec.clusters, index = team % spec.clusters;
  TeamDecoder<Numbers, NC> decoder(space, spec, shared, run, index, static_cast<int>(blockIdx.x) % blocks);
  Refinement refinement(decoder, space, spec, shared, run, index * NC);
  decoder.load();
  refinement.run(draws_of(space, run, index * NC));
#endif
}

constexpr int meeting_lines = 8;  // of 16 bytes: a line of the cache for a team's meetings

// A warp packs a tile of weights; all make the teams' memory as it must be: nobody has come to a meeting, nothing is
// written.
template <class Numbers>
__global__ void pack(const __grid_constant__ Space space, const __grid_constant__ Net net,
                     const __grid_constant__ TeamPlan plan, uint4* memory, int tiles, int teams) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), i = thread / 32;
  wait_for_previous();
  memory += run * plan.run_size;
  const int cleared = meeting_lines + 2 * plan.exchange_size;
  for (int j = thread; j < teams * cleared; j += static_cast<int>(gridDim.x * blockDim.x)) {
    const int at = j % cleared;
    const unsigned word = at < meeting_lines ? 0 : unwritten;
    memory[plan.weights_size + j / cleared * plan.team_size + at] = make_uint4(word, word, word, word);
  }
  if (i >= tiles) return;
  const int at = i * 32 * Numbers::words;
  int product = 0;
  while (product + 1 < 2 * net.depth && at >= plan.matrix[product + 1].at) ++product;
  const Layer& layer = net.layer[product / 2];
  const TeamMatrix& w = plan.matrix[product];
  const int tile = (at - w.at) / (32 * Numbers::words), n0 = tile / w.k * 16, k0 = tile % w.k * 16;
  const float* weights = space.of(space.parameters, run) + layer.weight;
  const bool forward = product % 2 == 0;
  Numbers::pack(memory + at, lane, [&](int k, int n) {
    const int in = forward ? k0 + k : n0 + n, out = forward ? n0 + n : k0 + k;
    return in < layer.inputs && out < layer.outputs ? weights[static_cast<std::size_t>(in) * layer.ld + out] : 0.0f;
  });
}

// Places of a team of so many blocks.
TrajectoryPlan plan_of(const DecoderShape& decoder, int chains, int blocks, int most, bool whole_first) {
  const Net& net = decoder.net;
  const bool halves = suits_halves(net, decoder.density, decoder.math);
  const int words = halves ? 1 : 2, rows = chains / 16, last = net.depth - 1, tile = 32 * words;
  TrajectoryPlan plan;
  TeamPlan& team = plan.team;
  team.halves = halves;
  team.binary = decoder.binary;
  team.blocks = blocks;
  team.tiles[0] = ceil_div(net.inputs(), 16);
  int widest = 1;
  for (int l = 0; l <= last; ++l) {
    team.tiles[l + 1] = ceil_div(net.layer[l].outputs, 16);
    team.slice[l] = ceil_div(team.tiles[l + 1], blocks);
    if (l > 0 || !whole_first) widest = std::max(widest, team.tiles[l + 1]);
  }
  const auto shared_out = [](int columns, int k) {
    const int at_once = ceil_div(columns, ceil_div(columns, warps));
    return ProductPlan{at_once, std::clamp(warps / at_once, 1, k)};
  };
  std::size_t at = 0;
  int scratch = 0;
  bool several_rounds = false;
  for (int product = 0; product <= 2 * last + 1; ++product) {
    const int l = product / 2;
    const bool forward = product % 2 == 0, first = l == 0;
    TeamMatrix& w = team.matrix[product];
    w = {team.tiles[forward ? l + 1 : l], team.tiles[forward ? l : l + 1], static_cast<int>(at)};
    at += static_cast<std::size_t>(w.n) * w.k * tile;
    const int columns = forward ? team.slice[l] : first ? w.n : team.slice[l - 1];
    if (forward && first && whole_first) continue;  // which is not shared out
    const ProductPlan how = team.how[product] = shared_out(columns, !forward && first ? team.slice[0] : w.k);
    scratch = std::max(scratch, how.parts * how.tiles * rows * 64);
    several_rounds = several_rounds || columns > how.tiles;
  }
  if (at > std::numeric_limits<int>::max()) return {};  // too much for places in ints, and for any block
  team.weights_size = at;
  Places places;
  const auto tiles = [&](int count) { return places.take<uint4>(count * rows * tile); };
  team.input = tiles(team.tiles[0]);
  team.first = whole_first ? tiles(team.tiles[1]) : 0;
  const int operand = last > 0 ? widest * rows * tile : 0;
  team.operand = team.scratch = places.take<uint4>(several_rounds ? operand : std::max(operand, scratch));
  if (several_rounds) team.scratch = places.take<uint4>(scratch);  // else sums take the operand's place
  team.own = whole_first ? 0 : tiles(team.slice[0]);
  for (int l = 0; l <= last; ++l) {
    const int items = l == 0 && whole_first ? 0 : team.slice[l] * rows * 64;
    const bool bits = l == last ? team.binary : halves;
    team.kept[l] = bits ? places.take<char>(items) : places.take<float4>(items);
    team.bias[l] = places.take<float>(16 * (l == 0 && whole_first ? team.tiles[1] : team.slice[l]));
  }
  team.answer = places.take<float4>(TeamPlan::answer_parts * team.tiles[0] * rows * 64);
  team.value = places.take<double>(chains);
  team.log_p = places.take<float>(2 * team.slice[last] * chains);
  team.schedule = places.take<int4>(2 * (2 * max_layers + 2 * net.depth * warps));
  int exchange = meeting_lines;
  const auto exchanged = [&](int l) {
    const int place = exchange;
    exchange += team.tiles[l + 1] * rows * tile;
    return place;
  };
  for (int l = whole_first ? 1 : 0; l <= last; ++l) {
    team.values_at[l] = l < last ? exchanged(l) : 0;
    team.deltas_at[l] = l > 0 ? exchanged(l) : 0;
  }
  team.exchange_size = exchange - meeting_lines;
  team.answers = exchange + team.exchange_size;
  team.values = team.answers + 2 * blocks * team.tiles[0] * rows * 64;
  team.team_size = round_up(team.values + blocks * chains, meeting_lines);
  plan.weights = WeightPlace::cache;
  plan.depth = net.depth;
  plan.cluster = 1;
  plan.chains = chains;
  plan.places = ChainPlaces(places.bytes(), chains, net.inputs());
  plan.bytes = plan.places.bytes;
  if (plan.bytes > most) return plan;
  // Weights stay where there is room for all of a product's, the largest first.
  struct Kept {
    int product;
    long long bytes;
  };
  std::vector<Kept> kept;
  for (int product = 0; product <= 2 * last + 1; ++product) {
    const int made = product / 2 - product % 2;
    if (made < 0) continue;  // back to z: hardly any
    const TeamMatrix& w = team.matrix[product];
    kept.push_back({product, 16LL * tile * w.k * (product == 0 && whole_first ? w.n : team.slice[made])});
  }
  std::ranges::stable_sort(kept, std::greater<>(), &Kept::bytes);
  for (const Kept& k : kept) {
    if (plan.bytes + k.bytes > most) continue;
    team.resident[k.product] = plan.bytes;
    plan.bytes += static_cast<int>(k.bytes);
  }
  return plan;
}

template <class Numbers>
TrajectoryKernel kernel_of(int chains) {
  switch (chains) {
    case 16:
      return trajectory<Numbers, 16>;
    case 32:
      return trajectory<Numbers, 32>;
    default:
      return trajectory<Numbers, 64>;
  }
}

}  // namespace

TrajectoryPlan plan_team(const DecoderShape& decoder, int chains, int blocks, int most) {
  if (chains < 16) return {};
  const TrajectoryPlan crossing = plan_of(decoder, chains, blocks, most, false);
  if (decoder.net.depth == 1) return crossing;
  const TrajectoryPlan whole = plan_of(decoder, chains, blocks, most, true);
  return whole.bytes <= most && (crossing.bytes > most || team_time(whole) <= team_time(crossing)) ? whole : crossing;
}

// What crosses, and what a multiprocessor reads of the cache: others' numbers, and weights that do not stay. With 64
// chains there are too few registers for weights on their way.
double team_time(const TrajectoryPlan& plan) {
  constexpr double crossing = 2, bytes_a_us = 45e3;
  const TeamPlan& team = plan.team;
  const double tile = team.halves ? 512 : 1024, rows = plan.chains / 16;
  double time = crossing + 1024.0 * team.blocks * team.tiles[0] * rows / bytes_a_us;  // answers
  for (int product = 0; product < 2 * plan.depth; ++product) {
    const int l = product / 2;
    const bool forward = product % 2 == 0, whole = product == 0 && team.first > 0;
    const TeamMatrix& w = team.matrix[product];
    const int columns = whole ? w.n : forward ? team.slice[l] : l > 0 ? team.slice[l - 1] : w.n;
    const int k = !forward && l == 0 ? team.slice[0] : w.k;
    if (team.resident[product] == 0) time += tile * columns * k / bytes_a_us;
    const bool crosses = forward ? l > (team.first > 0 ? 1 : 0) : l > 0;
    if (crosses) time += crossing + tile * rows * k / bytes_a_us;
  }
  return plan.chains == 64 ? 1.5 * time : time;
}

TrajectoryKernel team_kernel(const TrajectoryPlan& plan, Math math) {
  if (plan.team.halves) return kernel_of<Halves>(plan.chains);
  return math == Math::tf32 ? kernel_of<Floats<Math::tf32>>(plan.chains) : kernel_of<Floats<Math::fp32>>(plan.chains);
}

void launch_pack_team(const Space& space, const TrajectorySpec& spec, Math math, int runs, cudaStream_t stream) {
  const TeamPlan& team = spec.plan.team;
  const int tiles = static_cast<int>(team.weights_size) / (team.halves ? 32 : 64);
  constexpr int block = 256;
  const Launch launch(dim3(ceil_div(tiles, block / 32), runs), 1, block, 0, stream);
  const auto kernel = team.halves          ? pack<Halves>
                      : math == Math::tf32 ? pack<Floats<Math::tf32>>
                                           : pack<Floats<Math::fp32>>;
  check(cudaLaunchKernelEx(&launch.config, kernel, space, spec.decoder, team, spec.team_memory, tiles, spec.clusters),
        "packing weights");
}

}  // namespace hone::cuda
