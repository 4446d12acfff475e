// A second opinion on draws that somebody else made.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/run/watched_posterior.hpp"
#include "hone/base/cpus.hpp"
#include "python/src/fit.hpp"

namespace hone::python {

nb::dict check_draws(const ModelParts& parts, const SettingTexts& settings, const DrawsParts& draws, Stop& stop,
                     nb::object tell) {
  PosteriorRunConfig config;
  if (!parts.in_python()) config.check.fit.threads = default_threads();
  Settings table = opinion_settings(config);
  apply(table, settings);
  resolve(config);
  Watch watch(std::move(tell));
  SecondOpinion opinion;
  const Posterior* posterior = nullptr;
  {
    const nb::gil_scoped_release released;
    posterior = &parts.open(watch, &stop);
    const WatchedPosterior watched(*posterior, [&](std::int64_t done) { watch.tick(done); });
    opinion = second_opinion(watched, coordinates_of(*posterior, draws.draws, draws.scale, "draws"), draws.draws.log_q,
                             config.check,
                             {[&] { return stop.set.load(); },
                              [&](const std::string& text, std::int64_t gradients) { watch.say(text, gradients); }});
  }
  if (stop.set)
    opinion.judgement.notes.push_back(
        "the check was stopped early: this result rests on the draws that it had by then");
  const Findings& f = opinion.findings;
  nb::dict result = dict_of(opinion.judgement);
  result["verdict"] = verdict_name(opinion.judgement.verdict);
  result["shift"] = array_of(f.q.shift);
  result["sd_ratio"] = array_of(f.q.sd_ratio);
  result["p_value"] = f.q.p_value;
  result["k_hat"] = f.q.k_hat;
  result["vcd"] = f.at.empty() ? nb::object(nb::none()) : nb::make_tuple(f.vcd.mean, f.vcd.se);
  result["nested_rhat"] = f.chains.nested_rhat;
  result["steps"] = f.steps;
  result["outside_support"] = opinion.outside;
  result["gradients"] = opinion.gradients;
  result["coordinates"] = posterior->coordinate_names();
  result["names"] = posterior->names();
  result["interrupted"] = stop.set.load();
  nb::dict rows;
  for (const OpinionRow& row : opinion.rows)
    rows[row.name.c_str()] = nb::make_tuple(row.given_mean, row.given_sd, row.mean, row.sd, row.mcse);
  result["table"] = rows;
  result["refined"] = array_of(std::move(opinion.z));
  result["draws"] = array_of(std::move(opinion.natural));
  return result;
}

}  // namespace hone::python
