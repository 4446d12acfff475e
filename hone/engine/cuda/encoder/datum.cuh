#pragma once

#include "hone/engine/cuda/device/math.cuh"
#include "hone/engine/cuda/update/learn.cuh"

namespace hone::cuda {

// q's draw of one datum and the objective's gradient there, by one warp.

// One dimension of a draw: from the encoder's outputs, which are floats, and the noise.
struct Draw {
  double mean, sd, z;

  __device__ Draw(float raw_mean, float raw_sd, double noise)
      : mean(raw_mean), sd(softplus_shift + soft_plus<Math::fp32>(raw_sd - float_shift)), z(mean + sd * noise) {}
  __device__ void place(const Space& space, int run, int column, int d) const {
    const int i = column * space.latent + d;
    space.of(space.mean, run)[i] = mean;
    space.of(space.sd, run)[i] = sd;
    space.of(space.z0, run)[i] = z;
  }
};

// q of a datum and its draw, and the target at the draw and at the refined draw.
struct Datum {
  const double *mean, *sd, *noise;
  const float* raw_sd;
  const double *zt, *grad_p0;
  bool alive;
  double log_p0, value;  // 0 where it is not alive
  double baseline[2];
};

// 1 / s by Newton's steps from a float: a division of doubles takes many instructions.
__device__ __forceinline__ double inverse_of(double s) {
  double x = __frcp_rn(static_cast<float>(s));
  x = x * (2 - s * x);
  return x * (2 - s * x);
}

// x cut at ± bound; a NaN stays one (fmin and fmax would hide it).
__device__ __forceinline__ double bounded(double x, double bound) {
  return x < -bound ? -bound : x > bound ? bound : x;
}

__device__ inline double baseline_of(const Space& space, const ObjectiveSpec& spec, int run, int term, int datum) {
  if (!space.baseline[term]) return 0;
  const bool shared = space.of(space.now, run)->iteration <= spec.shared_until;
  return shared ? space.of(space.state, run)->shared[term] : space.of(space.baseline[term], run)[datum];
}

// The part of a Datum that is known before the refinement, in a block's shared memory.
struct DrawnDatum {
  double *mean, *sd, *noise, *baseline;
  float* raw_sd;

  __device__ DrawnDatum(double* at, int latent)
      : mean(at),
        sd(at + latent),
        noise(at + 2 * latent),
        baseline(at + 3 * latent),
        raw_sd(reinterpret_cast<float*>(at + 3 * latent + 2)) {}
  static constexpr long long bytes(int latent) { return 8LL * (4 * latent + 2); }
};

// eq. gradient_term1 and gradient_term2, with one lane per dimension: as hone/objective/terms.cpp. set(d, delta of the
// mean's last layer, delta of the deviation's)
template <class Set>
__device__ __forceinline__ void add_ascent(const Space& space, const ObjectiveSpec& spec, const Datum& q, double alpha,
                                           const double (&centred)[2], int lane, Set set) {
  const ObjectiveTerms& o = spec.objective;
  const bool first = o.first;
  const double weight = q.alive;
  const double refined_score = weight * (o.refined_score ? alpha : 0);
#pragma unroll 1
  for (int d = lane; d < space.latent; d += 32) {
    const double inverse = inverse_of(q.sd[d]), e = q.noise[d];
    double mean = 0, sd = 0;
    if (first && o.first_term == FirstTerm::reparameterized) {
      const double gradient = spec.analytic ? q.grad_p0[d] : q.grad_p0[d] + e * inverse;  // ∇_z f, or ∇_z log p alone
      mean += weight * gradient;
      sd += weight * (gradient * e + (spec.analytic ? inverse : 0));
    } else if (first) {
      const double c = weight * centred[0];
      mean += c * e * inverse;
      sd += c * (e * e - 1) * inverse + (spec.analytic ? weight * inverse : 0);
    }
    if (o.start_score) {
      const double c = -alpha * weight * bounded(centred[1], o.score_bound);
      mean += c * e * inverse;
      sd += c * (e * e - 1) * inverse;
    }
    const double u = (q.zt[d] - q.mean[d]) * inverse;
    mean += refined_score * u * inverse;
    sd += refined_score * (u * u - 1) * inverse;
    set(d, static_cast<float>(mean), static_cast<float>(sd) * logistic<Math::fp32>(q.raw_sd[d] - float_shift));
  }
}

// The objective's gradient in the datum's mean and deviation, and its DatumValues.
template <class Set>
__device__ __forceinline__ void ascend_datum(const Space& space, const ObjectiveSpec& spec, int run, int column,
                                             const Datum& q, int lane, Set set) {
  const DatumValues values(space, run);
  double sums[3] = {};  // D/2 log 2π + Σ log s, the whitened squares at z0 and at z_t
#pragma unroll 1
  for (int d = lane; d < space.latent; d += 32) {
    const double sd = q.sd[d];
    sums[0] += 0.5 * log_two_pi + logf(static_cast<float>(sd));
    sums[1] += square(q.noise[d]);
    sums[2] += square((q.zt[d] - q.mean[d]) * inverse_of(sd));
  }
  warp_sums(sums);
  const auto [log_normalizer, square0, square_t] = sums;
  const double f0 = q.log_p0 + 0.5 * square0 + log_normalizer;  // eq. instantaneous_elbo
  const double ft = q.value + 0.5 * square_t + log_normalizer;
  // what the terms' control variates follow; f without its constant is appendix 3's g
  const double followed[2] = {spec.analytic ? q.log_p0 : f0, spec.analytic ? ft - log_normalizer : ft};
  const double centred[2] = {followed[0] - q.baseline[0], followed[1] - q.baseline[1]};
  const double alpha = spec.objective.alpha * spec.objective.ramp.at(space.of(space.now, run)->iteration);
  add_ascent(space, spec, q, alpha, centred, lane, set);
  if (lane != 0) return;
  values.elbo[column] = spec.analytic ? q.log_p0 + 0.5 * space.latent + log_normalizer : f0;
  values.refined[column] = ft;
  values.terms[column] = followed[0];
  values.terms[space.batch + column] = followed[1];
}

}  // namespace hone::cuda
