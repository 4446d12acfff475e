#include "hone/engine/cuda/learn.cuh"

namespace hone::cuda {
namespace {

constexpr int data_a_block = 4;  // one warp a datum

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

dim3 grid_of(const Space& space, int runs) {
  return {static_cast<unsigned>(ceil_div(space.batch, data_a_block)), static_cast<unsigned>(runs), 1};
}

}  // namespace

void launch_draw(const Space& space, const std::uint64_t* seed, int runs, cudaStream_t stream) {
  draw<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space, seed);
  check(cudaGetLastError(), "drawing");
}

void launch_settle(const Space& space, int runs, cudaStream_t stream) {
  settle<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space);
  check(cudaGetLastError(), "settling draws");
}

void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream) {
  ascend<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space, spec);
  check(cudaGetLastError(), "the objective");
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
