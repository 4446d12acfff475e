#include "app/run/train_health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <vector>

#include "app/run/train_config.hpp"
#include "hone/base/statistics.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {
namespace {

constexpr int patience = 3;            // report intervals
constexpr double lost_nats = 100;      // an ELBO of real numbers may pass through 0
constexpr double fallen_share = 0.25;  // of the best ELBO's size …
constexpr double fallen_nats = 20;     // … and at least this
constexpr double grown_times = 10;     // the least VCD …
constexpr double grown_share = 2;      // … and this share of the ELBO's size: an untrained model has a VCD near 0

constexpr double recovered_share =
    0.05;                             // after a trouble that lasted the ELBO is back within this share of its best …
constexpr double recovered_nats = 5;  // … or within this

double at_least(const Estimate& vcd) { return std::isnan(vcd.se) ? vcd.mean : vcd.mean - 2 * vcd.se; }

std::optional<Trouble::Kind> kind_of(double elbo, double best, const Estimate& vcd, double least) {
  if (q_is_lost(elbo, vcd)) return Trouble::Kind::q_lost;
  if (best - elbo > std::max(fallen_share * std::abs(best), fallen_nats)) return Trouble::Kind::elbo_fell;
  if (at_least(vcd) > std::max({grown_times * least, grown_share * std::abs(elbo), lost_nats}))
    return Trouble::Kind::vcd_grew;
  return {};
}

bool has_recovered(double elbo, double best) {
  return best - elbo <= std::max(recovered_share * std::abs(best), recovered_nats);
}

}  // namespace

bool q_is_lost(double elbo, const Estimate& vcd) { return at_least(vcd) > std::max(5 * std::abs(elbo), lost_nats); }

std::string Trouble::text() const {
  switch (kind) {
    case Kind::q_lost:
      return fmt::format(
          "q was left behind since iteration {}: it does not follow its chains (a VCD of {:.4g} nats at an ELBO of "
          "{:.4g})",
          since, vcd, elbo);
    case Kind::elbo_fell:
      return fmt::format("the ELBO has fallen since iteration {}: it is {:.4g} now and was {:.4g} at its best", since,
                         elbo, best);
    case Kind::vcd_grew:
      break;
  }
  return fmt::format(
      "the VCD has grown since iteration {}: it is {:.4g} nats now and was {:.4g} at its least (the ELBO is {:.4g})",
      since, vcd, least, elbo);
}

std::string too_wide(const TrainRunConfig& config, const DataSet& train) {
  constexpr int most = 1000;       // data that are looked at
  constexpr double allowed = 10;   // the likelihoods' standard deviations are below 1
  constexpr double similar = 100;  // values whose standard deviations differ by more should not share a divisor
  if (!facts_of(config.train.model.density()).centred) return "";
  std::vector<Moments> values(static_cast<std::size_t>(train.dimension()));
  Matrix<double> column(train.dimension(), 1);
  for (int n = 0; n < std::min(most, train.size()); ++n) {
    train.expand(std::span<const int>(&n, 1), column.view());
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const double x = column(static_cast<int>(i), 0); std::isfinite(x)) values[i].add(x);
  }
  std::erase_if(values, [](const Moments& m) { return m.count() < 2 || !(m.sd() > 0); });
  if (values.empty()) return "";
  const auto [narrow, wide] = std::ranges::minmax(values, {}, [](const Moments& m) { return m.sd(); });
  if (wide.sd() <= allowed) return "";
  if (wide.sd() > similar * narrow.sd())
    return fmt::format("each column by its standard deviation (they go from {:.2g} to {:.2g})", narrow.sd(), wide.sd());
  double sum = 0;
  for (const Moments& m : values) sum += m.sd() * m.sd();
  return fmt::format("the data by about {:.2g}, their standard deviation", std::sqrt(sum / std::ssize(values)));
}

std::string advice(const TrainRunConfig& config, const std::string& too_wide) {
  const ObjectiveConfig& objective = config.objective;
  const bool vcd = objective.kind == ObjectiveKind::vcd && objective.alpha > 0;
  std::string text;
  const auto add = [&](bool helps, const std::string& what) {
    if (helps) text += (text.empty() ? "" : ", ") + what;
  };
  add(!too_wide.empty(), "dividing " + too_wide);
  add(make_objective(objective)->refines() && config.train.model.latent > 1 &&
          facts_of(config.train.model.density()).centred,
      "fewer latent dimensions (latent)");  // q of narrow posteriors whose dimensions are correlated: results/best
  add(config.train.model.initial == InitialWeights::paper, "init = \"scaled\"");
  add(vcd && objective.score_bound == no_bound && objective.estimator == Estimator::full,
      fmt::format("score_bound = {}", default_training_vcd.score_bound));
  add(vcd, fmt::format("a later start of the VCD (schedule.alpha_until above {})", objective.ramp.until));
  add(true, "smaller rates (rate_mean, rate_scale, rate_model)");
  return "What may help: " + text;
}

void TrainHealth::add(std::uint32_t iteration, double elbo, const Estimate& vcd) {
  if (std::isnan(elbo)) return;
  const double best = std::max(elbo, best_.value_or(elbo));
  const double least = std::isnan(vcd.mean) ? vcd.mean : std::min(vcd.mean, least_.value_or(vcd.mean));
  best_ = best;
  if (!std::isnan(vcd.mean)) least_ = least;
  auto kind = kind_of(elbo, best, vcd, least);
  if (!kind && trouble_ && trouble_->intervals >= patience && !has_recovered(elbo, best))
    kind = Trouble::Kind::elbo_fell;
  if (!kind) return trouble_.reset();
  const bool goes_on = trouble_.has_value();
  trouble_ = Trouble{.kind = *kind,
                     .since = goes_on ? trouble_->since : iteration,
                     .intervals = goes_on ? trouble_->intervals + 1 : 1,
                     .elbo = elbo,
                     .best = best,
                     .vcd = vcd.mean,
                     .least = least};
}

void TrainHealth::read(const std::filesystem::path& metrics) {
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    unsigned iteration = 0;
    double elbo = 0;
    Estimate vcd{std::nan(""), std::nan("")};  // a row without a VCD ends there
    if (std::sscanf(line.c_str(), "%u,%*f,%lf,%*f,%lf,%lf", &iteration, &elbo, &vcd.mean, &vcd.se) >= 2)
      add(iteration, elbo, vcd);
  }
}

bool TrainHealth::worth_a_word() const { return trouble_ && trouble_->intervals == patience; }

}  // namespace hone
