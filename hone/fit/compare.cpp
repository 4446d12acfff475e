#include "hone/fit/compare.hpp"

#include <algorithm>

#include "hone/assess/q_checks.hpp"

namespace hone {

void compare_with_q(const Posterior& posterior, const CheckedFitConfig& config, std::uint64_t seed,
                    CheckedFit& result) {
  const RefinedDraws& r = result.refined;
  const FittedQ& q = result.fit.q;
  const double log_det = q.whitening.log_det();
  std::vector<double> ratio(r.log_p0.size());
  for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] = r.log_p0[i] - r.log_q0[i];
  result.weights = smooth_weights(ratio);
  const auto over_z = [log_det](std::vector<double> log_q) {
    for (double& x : log_q) x -= log_det;
    return log_q;
  };
  result.log_p0 = r.log_p0;
  result.log_p = r.states.log_p;
  result.log_q0 = over_z(r.log_q0);
  result.log_q = over_z(r.log_q);

  Findings& f = result.findings;
  f.dimension = result.fit.q.whitening.dimension();
  f.starts = static_cast<int>(result.fit.starts.size());
  f.modes = result.fit.modes;
  f.component_per_mode = q.kind == QKind::mixture;
  f.fit_converged = result.fit.converged;
  Matrix<double> some(result.fit.q.whitening.dimension(), std::min(3, r.z0.cols()));
  q.whitening.to_z(r.z0.view().columns(0, some.cols()), some);
  f.coordinate_names = coordinate_words(posterior, some);
  f.chains = r.checks;
  if (r.checks.sd_error_value >= 0)
    f.sd_error_name = posterior.names()[static_cast<std::size_t>(r.checks.sd_error_value)];
  f.capped = r.capped && !result.interrupted;
  f.steps = r.steps;
  f.acceptance_aim = config.fit.acceptance;
  f.at = r.at;
  f.drifts = r.drifts;
  f.vcd = r.vcd;
  f.q = check_q(r, *q.family, q.whitening, result.weights, {seed, config.fit.threads});
  // Chains move in e: with a triangular L, e_i is the part of z_i that the coordinates before it do not explain.
  for (const std::string& name : f.coordinate_names)
    f.chain_names.push_back(q.whitening.is_diagonal() ? name : name + " (whitened)");
}

}  // namespace hone
