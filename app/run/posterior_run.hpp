#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/run/draws.hpp"
#include "app/run/json.hpp"
#include "app/run/methods.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/settings.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/target/stan.hpp"

namespace hone {

enum class Effort { quick, usual, thorough };

// One `hone fit`: everything that config.toml holds.
struct PosteriorRunConfig {
  std::string model, data;                                 // paths; data may be empty
  std::string budget = std::to_string(default_gradients);  // gradients, or seconds with an s behind
  ObjectiveKind objective = ObjectiveKind::vcd;            // or kl
  Effort effort = Effort::usual;                           // what `error` is if it is not given
  std::optional<double> error;                             // twice the standard errors of means, in sds
  CheckedFitConfig check;                                  // whose budget and objective `resolve` sets
};

Settings posterior_run_settings(PosteriorRunConfig& config);

// Adds the keys of config.toml that are not flags: model and data.
void add_model_keys(Settings& settings, PosteriorRunConfig& config);

// Reads budget and objective into config.check. Throws InputError if they make no sense.
void resolve(PosteriorRunConfig& config);

// model.stan (compiled unless it is in the cache) or model.so, with its data.
std::unique_ptr<Posterior> open_posterior(const PosteriorRunConfig& config, StanOptions options);

std::string family_name(QKind kind);  // "gaussian-full", …

// summary.json of a fit.
std::string fit_summary_json(const CheckedFit& fit, const PosteriorRunConfig& config, const FitGroups& groups);

// summary.json of a folder, read. Throws InputError if it is not that of a fit.
Json read_fit_summary(const std::filesystem::path& run);

// The judgement in it.
Judgement stored_judgement(const Json& summary);

// What the folder of a fit holds.
struct PosteriorRunFiles {
  std::string config, q, summary;                 // texts of config.toml, q.json, summary.json
  DrawTable draws_q, draws, draws_unconstrained;  // the last: the refined draws over the coordinates of the fit
  std::string verdict;                            // its name
  std::string stan_version;                       // of the model; empty: not known
  int steps = 0;                                  // of the refinement
  int chains = 1;                                 // of draws, one after another, all of one length
  FitGroups groups;                               // ArviZ's groups of the variables
  std::vector<DataArray> data;                    // the part of the data file that inference_data.nc holds
};

// The numbers in the data file; none if there is no file. Read them before the fit: the file may change meanwhile.
std::vector<DataArray> data_arrays(const PosteriorRunConfig& config);

PosteriorRunFiles posterior_run_files(const Posterior& posterior, const CheckedFit& fit, PosteriorRunConfig& config,
                                      std::vector<DataArray> data);

// Writes all of them, summary.json last.
void write_posterior_run(const RunFolder& folder, const PosteriorRunFiles& files);

// Writes inference_data.nc. Apart because it alone needs NetCDF.
void write_posterior_netcdf(const RunFolder& folder, const PosteriorRunFiles& files);

// Inits and metric for CmdStan: some of the refined draws that are written, and their covariance.
void write_warm_start_of(const std::filesystem::path& folder, const Posterior& posterior, const CheckedFit& fit,
                         const PosteriorRunFiles& files, int chains = 4);

// What `hone check` reads: the findings in a run's summary.json. Throws InputError where it is not the summary of a
// fit.
struct StoredFindings {
  Findings findings;
  Tolerances tolerances;  // of the fit
};
StoredFindings read_findings(const std::filesystem::path& run);
StoredFindings findings_in(const Json& summary, const std::filesystem::path& run);

// {"verdict", "reasons", "notes", "checks"}
std::string judgement_json(const Judgement& judgement, const Findings& findings, const Tolerances& tolerances);

}  // namespace hone
