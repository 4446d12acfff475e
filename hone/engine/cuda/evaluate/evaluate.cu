#include "hone/engine/cuda/evaluate/evaluate.cuh"

#include <algorithm>
#include <cmath>

#include "hone/base/statistics.hpp"
#include "hone/engine/evaluation_parts.hpp"

namespace hone::cuda {
namespace {

constexpr int points_at_once = 10000;  // chains that move together
// Points whose draws go through the decoder together: 32,768 rows fill the device, and the values of the paper's layers
// fit its cache.
constexpr int drawn_at_once = 64;
constexpr int sums_of_point = 2 * proposal_count + 1;  // (proposal, pilot or rest), the mixture of all

// A proposal: a diagonal Gaussian per point. Deviations after widening and what a density needs of them, (points, D),
// and one per point.
struct Gaussians {
  const double *mean, *sd, *inverse, *log_normalizer;
};

// The three proposals: q; q's deviations around the chain's mean; the chain's moments.
struct Proposals {
  Gaussians of[proposal_count];
  bool used[proposal_count];
  int latent;
};

// The sums of log p(z) and log r_i(z) of a draw.
struct DrawTerms {
  double prior, density[proposal_count];
};

struct DrawShape {
  int first, points, size, ld;  // points [first, first + points), `size` draws of each
  int lanes;                    // of a warp, for a draw
  std::uint32_t sequence;
  std::uint64_t seed;
  int proposal;
  std::uint32_t first_datum;
};

// A lane for every pair of numbers, up to a warp. Draws of an odd count share a pair with their neighbours.
int lanes_of_draw(int latent) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes < latent) lanes *= 2;
  return lanes;
}
__global__ void make_draws(Proposals p, DrawShape shape, float* input, DrawTerms* terms) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = min(thread / shape.lanes, shape.points * shape.size - 1), lane = thread % shape.lanes;
  const int point = shape.first + row / shape.size, draw = row % shape.size, begin = draw * p.latent;
  const std::size_t at = static_cast<std::size_t>(point) * p.latent;
  const Stream stream{Purpose::proposal, assessment_iteration, shape.first_datum + static_cast<std::uint32_t>(point),
                      shape.sequence};
  const double *mean = p.of[shape.proposal].mean, *sd = p.of[shape.proposal].sd;
  double prior = 0, squares[proposal_count] = {};
  for (int pair = begin / 2 + lane; 2 * pair < begin + p.latent; pair += shape.lanes) {
    const auto noise = random_pair(shape.seed, stream, static_cast<std::uint32_t>(pair), true);
    for (int i = 0; i < 2; ++i) {
      const int d = 2 * pair + i - begin;
      if (d < 0 || d >= p.latent) continue;
      const double z = mean[at + d] + sd[at + d] * (i == 0 ? noise.first : noise.second);
      input[static_cast<std::size_t>(row) * shape.ld + d] = static_cast<float>(z);
      prior += log_standard_normal(z);
      for (int j = 0; j < proposal_count; ++j)
        squares[j] += square((z - p.of[j].mean[at + d]) * p.of[j].inverse[at + d]);
    }
  }
  for (int offset = shape.lanes / 2; offset > 0; offset /= 2) {
    prior += __shfl_xor_sync(0xFFFFFFFFu, prior, offset);
    for (double& sum : squares) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
  }
  if (lane != 0) return;
  DrawTerms& t = terms[row];
  t.prior = prior;
  for (int j = 0; j < proposal_count; ++j) t.density[j] = -0.5 * squares[j] - p.of[j].log_normalizer[point];
}

// One block per point: adds its draws' weights to its sums, in an order that is always the same.
__global__ void weigh(Proposals p, DrawShape shape, const DrawTerms* terms, const float* partial, int parts,
                      const double* constant, int begin, int pilot, WeightSums* all) {
  __shared__ WeightSums shared[3][128];
  const int point = shape.first + static_cast<int>(blockIdx.x), rows = shape.points * shape.size;
  const WeightSums none = WeightSums::of(-infinity);
  WeightSums mine[3] = {none, none, none};  // pilot, rest, mixture
  for (int draw = threadIdx.x; draw < shape.size; draw += blockDim.x) {
    const int row = static_cast<int>(blockIdx.x) * shape.size + draw;
    double joint = terms[row].prior + constant[point];
    for (int part = 0; part < parts; ++part) joint += partial[static_cast<std::size_t>(part) * rows + row];
    if (!isfinite(joint)) joint = -infinity;  // weighs nothing: the estimate stays a lower bound
    double top = -infinity, sum = 0;
    int used = 0;
    for (int i = 0; i < proposal_count; ++i)
      if (p.used[i]) top = fmax(top, terms[row].density[i]);
    for (int i = 0; i < proposal_count; ++i)
      if (p.used[i]) sum += exp(terms[row].density[i] - top), ++used;
    mine[begin + draw < pilot ? 0 : 1].add(WeightSums::of(joint - terms[row].density[shape.proposal]));
    mine[2].add(WeightSums::of(joint - top - log(sum / used)));
  }
  for (int i = 0; i < 3; ++i) shared[i][threadIdx.x] = mine[i];
  __syncthreads();
  for (int width = 64; width > 0; width /= 2) {
    if (this_thread() < width)
      for (int i = 0; i < 3; ++i) shared[i][threadIdx.x].add(shared[i][threadIdx.x + width]);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  WeightSums* to = all + static_cast<std::size_t>(point) * sums_of_point;
  to[2 * shape.proposal].add(shared[0][0]);
  to[2 * shape.proposal + 1].add(shared[1][0]);
  to[sums_of_point - 1].add(shared[2][0]);
}

__global__ void add_moments(const double* z, int size, Moments* moments) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) moments[i].add(z[i]);
}

struct PointMoments {
  std::vector<double> mean, sd;  // (points, D)
};

PointEvaluation combined(const WeightSums* sums, const EvaluationConfig& config) {
  std::array<std::optional<ProposalEstimates>, proposal_count> proposals;
  const int pilot = pilot_draws(config.samples);
  int used = 0;
  for (int j = 0; j < proposal_count; ++j) {
    if (!config.proposals[j]) continue;
    ++used;
    WeightSums all = sums[2 * j];
    all.add(sums[2 * j + 1]);
    proposals[j] = {.all = all.estimate(config.samples),
                    .pilot = sums[2 * j].estimate(pilot).log_likelihood,
                    .rest = sums[2 * j + 1].estimate(config.samples - pilot).log_likelihood};
  }
  return combine(proposals, sums[sums_of_point - 1].estimate(static_cast<double>(used) * config.samples));
}

// Points that are evaluated together: their data on the device, and the means and deviations of their proposals.
class Evaluator {
 public:
  Evaluator(const TrainedRun& run, const EvaluationConfig& evaluation, const PointData& data, std::uint32_t first_datum)
      : run_(run),
        evaluation_(evaluation),
        latent_(run.plan.config.model.latent),
        ld_(padded_width(latent_)),
        points_(static_cast<int>(data.constant.size())),
        first_datum_(first_datum),
        seed_(std::span<const std::uint64_t>(&run.seed, 1)),
        x_(data.x),
        constant_(data.constant) {
    proposals_.latent = latent_;
    const PointMoments q = encoded();
    const PointMoments chain = evaluation.proposals[1] || evaluation.proposals[2] ? chain_moments(q.mean) : q;
    for (int j = 0; j < proposal_count; ++j) {
      proposals_.of[j] = gaussians(j == 0 ? q.mean : chain.mean, j == 2 ? chain.sd : q.sd);
      proposals_.used[j] = evaluation.proposals[j];
    }
  }

  // The first `sampled` of the points. `progress` is told how many data are done.
  std::vector<PointEvaluation> evaluate(int sampled, const std::function<void(int)>& progress) {
    const std::vector<WeightSums> all = sample(sampled, progress).download();
    std::vector<PointEvaluation> result;
    for (int i = 0; i < sampled; ++i)
      result.push_back(combined(&all[static_cast<std::size_t>(i) * sums_of_point], evaluation_));
    return result;
  }

 private:
  int ld_pixels() const { return padded_width(run_.plan.encoder.inputs()); }

  PointMoments encoded() const {
    const auto rows = static_cast<std::size_t>(points_), half = rows * ld_;
    Memory<float> outputs(2 * half);
    Tape tape = {x_.data(), ld_pixels(), {}, {}};
    tape.value[run_.plan.encoder.depth - 1] = outputs.data();
    ProductPath path(run_.plan.math, false);
    path.allocate_scratch(run_.plan.encoder, {.rows = rows, .nets = 2});
    const Sides sides{.nets = 2, .net_parameters = run_.plan.net_parameters, .net_rows = rows};
    path.with(run_.plan.encoder, run_.parameters, tape, sides, queue_, [&](const auto& networks) {
      networks.prepare();
      networks.forward(points_);
    });
    queue_.wait();
    const std::vector<float> raw = outputs.download();
    PointMoments q;
    for (std::size_t i = 0; i < rows; ++i)
      for (int d = 0; d < latent_; ++d) {
        q.mean.push_back(static_cast<double>(raw[i * ld_ + d]));
        q.sd.push_back(modified_softplus(static_cast<double>(raw[half + i * ld_ + d])));
      }
    return q;
  }

  // What is the same for all draws of a point is computed once.
  Gaussians gaussians(const std::vector<double>& mean, std::vector<double> sd) {
    std::vector<double> inverse(sd.size()), log_normalizer(points_, 0.5 * log_two_pi * latent_);
    for (std::size_t i = 0; i < sd.size(); ++i) {
      sd[i] *= evaluation_.widening;
      inverse[i] = 1 / sd[i];
      log_normalizer[i / latent_] += std::log(sd[i]);
    }
    const auto kept = [&](const std::vector<double>& values) { return memory_.emplace_back(values).data(); };
    return {.mean = kept(mean), .sd = kept(sd), .inverse = kept(inverse), .log_normalizer = kept(log_normalizer)};
  }

  // From q's mean: burn_in adapting steps, then `kept` whose moments count.
  PointMoments chain_moments(const std::vector<double>& start) const {
    ChainWalk walk({run_.decoder(), x_.data(), constant_.data()}, points_, run_.plan.hmc(), queue_);
    Memory<double> step_sizes(std::vector<double>(ceil_div(points_, evaluation_group), run_.step_size));
    const StepSizeRule rule{run_.step_size, run_.plan.config.refine.acceptance, run_.plan.config.refine.gain};
    const StepSizeArrays sizes{.step_size = step_sizes.data(), .rule = rule, .group = evaluation_group, .run = 0};
    const auto step = [&](std::uint32_t iteration, std::uint32_t index, bool adapt) {
      walk.step({.seed = seed_.data(), .iteration = nullptr, .fixed_iteration = iteration, .first_datum = first_datum_},
                sizes, index, adapt);
    };
    walk.place(start);
    walk.begin();
    for (int i = 0; i < evaluation_.burn_in; ++i) step(assessment_iteration, static_cast<std::uint32_t>(i), true);
    const Memory<Moments> moments(start.size());
    const int size = static_cast<int>(start.size());
    for (int i = 1; i <= evaluation_.kept; ++i) {
      step(assessment_iteration + static_cast<std::uint32_t>(i), 0, false);
      launch(add_moments, threads_for(size), queue_, "summing moments", walk.chains().z, size, moments.data());
    }
    queue_.wait();
    PointMoments chain;
    for (const Moments& m : moments.download()) {
      chain.mean.push_back(m.mean());
      chain.sd.push_back(std::max(m.sd(), smallest_chain_sd));
    }
    return chain;
  }

  Memory<WeightSums> sample(int sampled, const std::function<void(int)>& progress) {
    const std::size_t size = static_cast<std::size_t>(sampled) * sums_of_point;
    Memory<WeightSums> sums(std::vector<WeightSums>(size, WeightSums::of(-infinity)));
    const int together = std::max(1, run_.rows_at_once(drawn_at_once * evaluation_block) / evaluation_block),
              rows = together * evaluation_block;
    const int lanes = lanes_of_draw(latent_);
    const BatchDecoder decoder(run_.decoder(), rows, false, queue_);
    Memory<float> input(static_cast<std::size_t>(rows) * ld_);
    Memory<float> partial(static_cast<std::size_t>(rows) * decoder.parts());
    Memory<DrawTerms> terms(rows);
    for (int first = 0; first < sampled; first += together) {
      const int points = std::min(together, sampled - first);
      for (int begin = 0; begin < evaluation_.samples; begin += evaluation_block)
        for (int j = 0; j < proposal_count; ++j) {
          if (!proposals_.used[j]) continue;
          const int size = std::min(evaluation_block, evaluation_.samples - begin), count = points * size;
          const auto sequence = static_cast<std::uint32_t>(begin / evaluation_block * proposal_count + j);
          const DrawShape shape{.first = first,
                                .points = points,
                                .size = size,
                                .ld = ld_,
                                .lanes = lanes,
                                .sequence = sequence,
                                .seed = run_.seed,
                                .proposal = j,
                                .first_datum = first_datum_};
          launch(make_draws, {ceil_div(count * lanes, 128), 128}, queue_, "drawing from proposals", proposals_, shape,
                 input.data(), terms.data());
          const float* x = x_.data() + static_cast<std::size_t>(first) * ld_pixels();
          decoder.run(count, input.data(), {.x = x, .rows_per_datum = size, .partial = partial.data()}, nullptr);
          launch(weigh, {points, 128}, queue_, "weighing draws", proposals_, shape, terms.data(), partial.data(),
                 decoder.parts(), constant_.data(), begin, pilot_draws(evaluation_.samples), sums.data());
        }
      if (!progress) continue;
      queue_.wait();
      progress(static_cast<int>(first_datum_) - evaluation_.first + first + points);
    }
    queue_.wait();
    return sums;
  }

  const TrainedRun& run_;
  const EvaluationConfig& evaluation_;
  int latent_, ld_, points_;
  std::uint32_t first_datum_;
  Queue queue_;
  Memory<std::uint64_t> seed_;
  Memory<float> x_;
  Memory<double> constant_;
  std::vector<Memory<double>> memory_;  // of the proposals
  Proposals proposals_ = {};
};

}  // namespace

std::vector<PointEvaluation> evaluate(const TrainedRun& run, const DataSet& data, const EvaluationConfig& config,
                                      const std::function<void(int)>& progress) {
  run.model.check(data);
  hone::check(config);
  std::vector<PointEvaluation> result(std::min(data.size(), config.points.value_or(data.size())));
  const bool exact = run.plan.config.model.exact_evidence();
  Minibatch<float> one = run.model.minibatch(1);
  const auto hear = progress_of_all(progress, run.ranks, static_cast<int>(result.size()));
  const auto found = [&](const PointData& points, int begin, int wanted) {
    auto some = Evaluator(run, config, points, static_cast<std::uint32_t>(config.first + begin)).evaluate(wanted, hear);
    for (int i = 0; exact && i < wanted; ++i) {
      const int n = begin + i;
      run.model.expand(data, std::span<const int>(&n, 1), 0, 1, one);
      some[i].exact = run.model.exact_log_likelihood(one, 0);
    }
    return some;
  };
  for_parts(run, data, {run.rows_at_once(points_at_once), evaluation_group}, std::span(result), found);
  return result;
}

}  // namespace hone::cuda
