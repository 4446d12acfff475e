#include "hone/engine/cuda/iteration.cuh"

namespace hone::cuda {
namespace {

constexpr int data_a_block = 4;  // one warp a datum

__global__ void gather(Space space, DataView data, RateSpec rates) {
  const int run = static_cast<int>(blockIdx.y), column = static_cast<int>(blockIdx.x);
  RunState& state = *space.of(space.state, run);
  const std::uint32_t iteration = state.next;
  const std::size_t row = static_cast<std::size_t>(iteration - state.chunk_first) * space.batch;
  const int datum = space.of(space.indices, run)[row + column];
  float* x = space.of(space.x, run) + static_cast<std::size_t>(column) * space.ld_pixels;
  for (int i = threadIdx.x; i < data.pixels; i += blockDim.x)
    x[i] = data.bits
               ? static_cast<float>(data.bits[static_cast<std::size_t>(datum) * data.words + i / 64] >> (i % 64) & 1)
               : data.values[static_cast<std::size_t>(datum) * data.pixels + i];
  if (threadIdx.x != 0) return;
  space.of(space.datum, run)[column] = datum;
  space.of(space.constant, run)[column] = data.constant ? data.constant[datum] : 0;
  if (column != 0) return;
  state.iteration = iteration;
  state.rate_factor = decay_factor(rates.decay, rates.every, iteration);
  const AdamCorrection correction(iteration);
  state.adam[0] = correction.first;
  state.adam[1] = correction.second;
  for (int step = 0; step < space.steps; ++step) space.of(space.meeting, run)[step] = 0;
}

__global__ void draw(Space space, const std::uint64_t* seed) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
  if (column >= space.batch) return;
  const ChainArrays chains = space.chains.of(run);
  const std::uint32_t iteration = space.of(space.state, run)->iteration;
  for (int pair = lane; 2 * pair < space.latent; pair += 32) {
    const auto normal = random_pair(seed[run], {Purpose::draw, iteration, static_cast<std::uint32_t>(column), 0},
                                    static_cast<std::uint32_t>(pair), true);
    for (int e = 0; e < 2 && 2 * pair + e < space.latent; ++e) {
      const int d = 2 * pair + e, i = column * space.latent + d, j = column * space.ld_latent + d;
      const double noise = e == 0 ? normal.first : normal.second;
      const double mean = space.of(space.raw_mean, run)[j], sd = modified_softplus(space.of(space.raw_sd, run)[j]);
      const double z = mean + sd * noise;
      space.of(space.mean, run)[i] = mean;
      space.of(space.sd, run)[i] = sd;
      space.of(space.noise, run)[i] = noise;
      space.of(space.z0, run)[i] = z;
      chains.z[i] = z;
      chains.input[j] = static_cast<float>(z);
    }
  }
}

// One warp a datum and step.
__global__ void draw_steps(Space space, const std::uint64_t* seed, HmcShape shape) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
  if (column >= space.batch) return;
  const auto datum = static_cast<std::uint32_t>(column), step = static_cast<std::uint32_t>(blockIdx.z);
  const std::uint32_t iteration = space.of(space.state, run)->iteration;
  const std::size_t at = static_cast<std::size_t>(blockIdx.z) * space.batch + column;
  double* momentum = space.of(space.drawn_momentum, run) + at * space.latent;
  const int pairs = (space.latent + 1) / 2;
  for (int task = lane; task < pairs + 2; task += 32) {
    if (task < pairs) {
      const auto normal =
          random_pair(seed[run], {Purpose::momentum, iteration, datum, step}, static_cast<std::uint32_t>(task), true);
      momentum[2 * task] = normal.first;
      if (2 * task + 1 < space.latent) momentum[2 * task + 1] = normal.second;
    } else if (task == pairs) {
      space.of(space.drawn_log_uniform, run)[at] =
          log(random_pair(seed[run], {Purpose::accept, iteration, datum, step}, 0, false).first);
    } else {
      space.of(space.drawn_length, run)[at] = trajectory_length(shape, seed[run], iteration, datum, step);
    }
  }
}

__global__ void settle(Space space) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
  if (column >= space.batch) return;
  const ChainArrays chains = space.chains.of(run);
  const bool alive = chains.value[column] != -infinity;
  for (int d = lane; d < space.latent; d += 32) {
    const int i = column * space.latent + d;
    space.of(space.grad_p0, run)[i] = alive ? chains.gradient[i] : 0;
    if (!alive) chains.gradient[i] = 0;
  }
  if (lane != 0) return;
  space.of(space.alive, run)[column] = alive;
  space.of(space.log_p0, run)[column] = alive ? chains.value[column] : 0;
}

__global__ void refined_input(Space space) {
  const int run = static_cast<int>(blockIdx.y), column = static_cast<int>(blockIdx.x);
  const ChainArrays chains = space.chains.of(run);
  const bool alive = space.of(space.alive, run)[column];
  for (int d = threadIdx.x; d < space.latent; d += blockDim.x)
    chains.input[column * space.ld_latent + d] = alive ? static_cast<float>(chains.z[column * space.latent + d]) : 0.0f;
}

__global__ void spread_baselines(Space space) {
  const int run = static_cast<int>(blockIdx.y);
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (n >= space.data) return;
  for (int term = 0; term < 2; ++term)
    if (space.baseline[term]) space.of(space.baseline[term], run)[n] = space.of(space.state, run)->shared[term];
}

constexpr int learn_threads = 128;

// What is known of every datum: the ELBO, f at z_t, and what the control variates of the terms learn from.
struct Figures {
  double *elbo, *refined, *term[2];

  __device__ Figures(const Space& space, int run) {
    double* const f = space.of(space.figures, run);
    elbo = f;
    refined = f + space.batch;
    term[0] = f + 2 * space.batch;
    term[1] = f + 3 * space.batch;
  }
};

// One datum's means and deviations, with one lane a dimension.
struct Datum {
  const double *mean, *sd, *noise, *zt, *grad_p0;
  double log_p0, value, weight;
};

// − D/2 log 2π − Σ log s goes by the name of minus log_normalizer; whitened squares at z0 and at z_t
struct Sums {
  double log_normalizer, square0, square_t;
};
__device__ Sums sums_of(const Datum& q, int latent, int lane) {
  Sums s = {0, 0, 0};
  for (int d = lane; d < latent; d += 32) {
    s.log_normalizer += 0.5 * log_two_pi + log(q.sd[d]);
    s.square0 += square(q.noise[d]);
    s.square_t += square((q.zt[d] - q.mean[d]) / q.sd[d]);
  }
  return {warp_sum(s.log_normalizer), warp_sum(s.square0), warp_sum(s.square_t)};
}

__device__ double baseline_of(const Space& space, const ObjectiveSpec& spec, const RunState& state, int run, int term,
                              int datum) {
  if (!space.baseline[term]) return 0;
  return state.iteration <= spec.shared_until ? state.shared[term] : space.of(space.baseline[term], run)[datum];
}

// eq. gradient_term1 and gradient_term2 of one datum, with one lane a dimension: as hone/objective/terms.cpp
__device__ void add_ascent(const Space& space, const ObjectiveSpec& spec, const Datum& q, const double (&centred)[2],
                           int run, int column, int lane) {
  const ObjectiveConfig& o = spec.objective;
  const bool first = o.kind != ObjectiveKind::li2017, second = o.kind == ObjectiveKind::vcd;
  const double refined_score = q.weight * (o.kind == ObjectiveKind::li2017 ? 1 : second ? o.alpha : 0);
  for (int d = lane; d < space.latent; d += 32) {
    const double s = q.sd[d], e = q.noise[d];
    double mean = 0, sd = 0;
    if (first && o.first_term == FirstTerm::reparameterized) {
      const double slope = spec.analytic ? q.grad_p0[d] : q.grad_p0[d] + e / s;  // ∇_z f, or ∇_z log p alone
      mean += q.weight * slope;
      sd += q.weight * (slope * e + (spec.analytic ? 1 / s : 0));
    } else if (first) {
      const double c = q.weight * centred[0];
      mean += c * e / s;
      sd += c * (e * e - 1) / s + (spec.analytic ? q.weight / s : 0);
    }
    if (second && o.estimator == Estimator::full) {
      const double c = -o.alpha * q.weight * centred[1];
      mean += c * e / s;
      sd += c * (e * e - 1) / s;
    }
    const double u = (q.zt[d] - q.mean[d]) / s;
    mean += refined_score * u / s;
    sd += refined_score * (u * u - 1) / s;
    const int j = column * space.ld_latent + d;
    space.of(space.delta_mean, run)[j] = static_cast<float>(mean);
    space.of(space.delta_sd, run)[j] =
        static_cast<float>(sd * sigmoid(space.of(space.raw_sd, run)[j] - softplus_shift));
  }
}

// C_n of data that come once learn from their value; of one that comes twice, from both in turn.
__device__ void learn_baseline(const Space& space, const ObjectiveSpec& spec, RunState& state, int run, int term,
                               const double* value) {
  const double decay = spec.objective.baseline_decay;
  const int* datum = space.of(space.datum, run);
  const int* alive = space.of(space.alive, run);
  if (state.iteration <= spec.shared_until) {
    if (threadIdx.x >= 32) return;
    double sum = 0, weight = 0;
    for (int c = threadIdx.x; c < space.batch; c += 32)
      if (alive[c]) sum += value[c], weight += 1;
    sum = warp_sum(sum);
    weight = warp_sum(weight);
    if (threadIdx.x == 0 && weight > 0) state.shared[term] = decay * state.shared[term] + (1 - decay) * sum / weight;
    return;
  }
  for (int c = threadIdx.x; c < space.batch; c += learn_threads) {
    bool last = true;
    for (int other = c + 1; other < space.batch; ++other) last = last && datum[other] != datum[c];
    if (!last) continue;
    double& kept = space.of(space.baseline[term], run)[datum[c]];
    double now = kept;
    for (int other = 0; other <= c; ++other)
      if (datum[other] == datum[c] && alive[other]) now = decay * now + (1 - decay) * value[other];
    kept = now;
  }
}

__device__ void write_figures(const Space& space, const ObjectiveSpec& spec, RunState& state, int run,
                              const Figures& figures) {
  const ChainArrays chains = space.chains.of(run);
  const int* alive = space.of(space.alive, run);
  const bool refines = spec.objective.kind != ObjectiveKind::kl;
  double sum[7] = {};  // weight, elbo, f at z_t, acceptance, proposals, not finite, dropped
  for (int c = threadIdx.x; c < space.batch; c += 32) {
    if (!alive[c]) {
      sum[6] += 1;
      continue;
    }
    const double terms[6] = {1,
                             figures.elbo[c],
                             figures.refined[c],
                             chains.acceptance[c],
                             static_cast<double>(chains.proposals[c]),
                             static_cast<double>(chains.nonfinite[c])};
    for (int i = 0; i < 6; ++i) sum[i] += terms[i];
  }
  for (double& s : sum) s = warp_sum(s);
  if (threadIdx.x != 0) return;
  MetricsRow row = {};
  row.elbo = sum[1] / sum[0];
  row.vcd = sum[2] / sum[0] - row.elbo;  // eq. new_divergence_rearranged
  row.refined = refines;
  row.dropped = static_cast<int>(sum[6]);
  if (refines) {
    row.acceptance = sum[3];
    row.proposals = static_cast<int>(sum[4]);
    row.nonfinite = static_cast<int>(sum[5]);
  }
  space.of(space.metrics, run)[state.iteration - state.chunk_first] = row;
  if (refines && spec.adapt == Adapt::between && row.proposals > 0)
    state.step_size = spec.sizes.rule.next(state.step_size, row.acceptance / row.proposals);
  state.next = state.iteration + 1;
}

// One warp a datum.
__global__ void ascend(Space space, ObjectiveSpec spec) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
  if (column >= space.batch) return;
  const RunState& state = *space.of(space.state, run);
  const ChainArrays chains = space.chains.of(run);
  const Figures figures(space, run);
  const std::size_t i = static_cast<std::size_t>(column) * space.latent;
  const bool alive = space.of(space.alive, run)[column];
  const Datum q = {space.of(space.mean, run) + i,    space.of(space.sd, run) + i,
                   space.of(space.noise, run) + i,   chains.z + i,
                   space.of(space.grad_p0, run) + i, space.of(space.log_p0, run)[column],
                   alive ? chains.value[column] : 0, alive ? 1.0 : 0.0};
  const Sums s = sums_of(q, space.latent, lane);
  const double f0 = q.log_p0 + 0.5 * s.square0 + s.log_normalizer;  // eq. instantaneous_elbo
  const double ft = q.value + 0.5 * s.square_t + s.log_normalizer;
  // what the terms' control variates follow; f without its constant is appendix 3's g
  const double followed[2] = {spec.analytic ? q.log_p0 : f0, spec.analytic ? ft - s.log_normalizer : ft};
  const int datum = space.of(space.datum, run)[column];
  const double centred[2] = {followed[0] - baseline_of(space, spec, state, run, 0, datum),
                             followed[1] - baseline_of(space, spec, state, run, 1, datum)};
  add_ascent(space, spec, q, centred, run, column, lane);
  if (lane != 0) return;
  figures.elbo[column] = spec.analytic ? q.log_p0 + 0.5 * space.latent + s.log_normalizer : f0;
  figures.refined[column] = ft;
  figures.term[0][column] = followed[0];
  figures.term[1][column] = followed[1];
}

// One block a run.
__global__ void __launch_bounds__(learn_threads) learn(Space space, ObjectiveSpec spec) {
  const int run = static_cast<int>(blockIdx.x);
  RunState& state = *space.of(space.state, run);
  const Figures figures(space, run);
  for (int term = 0; term < 2; ++term)
    if (space.baseline[term]) learn_baseline(space, spec, state, run, term, figures.term[term]);
  if (threadIdx.x < 32) write_figures(space, spec, state, run, figures);
}

dim3 grid_of(const Space& space, int runs) {
  return {static_cast<unsigned>(ceil_div(space.batch, data_a_block)), static_cast<unsigned>(runs), 1};
}

}  // namespace

void launch_gather(const Space& space, const DataView& data, const RateSpec& rates, int runs, cudaStream_t stream) {
  gather<<<dim3(space.batch, runs), 128, 0, stream>>>(space, data, rates);
  check(cudaGetLastError(), "gathering a minibatch");
}

void launch_draw(const Space& space, const std::uint64_t* seed, int runs, cudaStream_t stream) {
  draw<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space, seed);
  check(cudaGetLastError(), "drawing");
}

void launch_draw_steps(const Space& space, const std::uint64_t* seed, const HmcShape& shape, int runs,
                       cudaStream_t stream) {
  dim3 grid = grid_of(space, runs);
  grid.z = static_cast<unsigned>(space.steps);
  draw_steps<<<grid, 32 * data_a_block, 0, stream>>>(space, seed, shape);
  check(cudaGetLastError(), "drawing momenta");
}

void launch_settle(const Space& space, int runs, cudaStream_t stream) {
  settle<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space);
  check(cudaGetLastError(), "settling draws");
}

void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream) {
  ascend<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space, spec);
  check(cudaGetLastError(), "the objective");
}

void launch_learn(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream) {
  learn<<<runs, learn_threads, 0, stream>>>(space, spec);
  check(cudaGetLastError(), "the control variates");
}

void launch_refined_input(const Space& space, int runs, cudaStream_t stream) {
  refined_input<<<dim3(space.batch, runs), 64, 0, stream>>>(space);
  check(cudaGetLastError(), "placing refined draws");
}

void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream) {
  spread_baselines<<<dim3(ceil_div(space.data, 256), runs), 256, 0, stream>>>(space);
  check(cudaGetLastError(), "spreading the control variate");
}

}  // namespace hone::cuda
