#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "app/run/provenance.hpp"
#include "app/run/rows.hpp"
#include "app/run/unfinished_scores.hpp"
#include "app/run/using_model.hpp"
#include "hone/assess/importance.hpp"
#include "hone/base/error.hpp"
#include "hone/base/sha256.hpp"

namespace hone {
namespace {

template <class T>
void update(Sha256& sum, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  sum.update({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

// A checksum of data that come in pieces, in the form in which they are kept.
class DataSum {
 public:
  void add(const DataSet& data, int first) {
    if (first == 0) sum_ = Sha256();
    const std::array<double, 4> form = {static_cast<double>(data.shape().rows), static_cast<double>(data.shape().cols),
                                        static_cast<double>(data.shape().channels), data.scale()};
    if (first == 0) update(sum_, std::span<const double>(form));
    if (const auto bytes = data.bytes(); !bytes.empty()) return sum_.update(bytes);
    Matrix<double> column(data.dimension(), 1);
    for (int n = 0; n < data.size(); ++n) {
      if (data.bits()) {
        update(sum_, data.bits()->row(n));
        continue;
      }
      data.expand(std::span<const int>(&n, 1), column.view());
      update(sum_, std::span<const double>(column.column(0)));
    }
  }
  std::string hex() { return sum_.hex(); }

 private:
  Sha256 sum_;
};

std::string model_sum(const TrainedNetworks& networks) {
  Sha256 sum;
  update(sum, std::span<const std::uint32_t>(&networks.state().iteration, 1));
  update(sum, std::span<const double>(&networks.state().step_size, 1));
  for (const auto& [key, value] : identity_of(networks.config())) {
    update(sum, std::span<const char>(key));
    update(sum, std::span<const char>(value));
  }
  for (const NamedArray& array : networks.state().arrays) {
    update(sum, std::span<const char>(array.name));
    std::visit([&](const auto& values) { update(sum, std::span(values)); }, array.values);
  }
  return sum.hex();
}

std::string settings_text(UsingModel& use, const ScoreOptions& wanted) {
  const std::string method =
      wanted.method == ScoreMethod::annealing
          ? fmt::format("--method ais --ais-steps {} --ais-chains {}", wanted.annealing.steps, wanted.annealing.chains)
          : fmt::format("--method importance --samples {}", wanted.importance.samples);
  return fmt::format("{}, {} data, {} engine, hone {}", method, use.count(),
                     use.networks().config().engine == EngineKind::cuda ? "cuda" : "cpu", hone_version());
}

// The scores of data, the first of which is datum `first`.
std::vector<Score> scores_of(UsingModel& use, const ScoreOptions& wanted, const DataSet& data, int first,
                             const std::function<void(int)>& progress) {
  std::vector<Score> scores;
  const auto add = [&](const ImportanceEstimate& estimate, int samples, std::optional<double> exact) {
    scores.push_back({.datum = first + static_cast<int>(scores.size()),
                      .log_likelihood = estimate.log_likelihood,
                      .error = std::sqrt(relative_variance(estimate, samples)),
                      .effective_samples = estimate.effective_samples,
                      .exact = exact});
  };
  if (wanted.method == ScoreMethod::annealing) {
    for (const AnnealedPoint& point : use.networks().anneal(data, wanted.annealing, progress, first))
      add(point.estimate, wanted.annealing.chains, {});
    return scores;
  }
  EvaluationConfig config = wanted.importance;
  config.first = first;
  for (const PointEvaluation& point : use.networks().evaluate(data, config, progress))
    add(point.mixture, proposal_count * wanted.importance.samples, point.exact);
  return scores;
}

// Scores the data that have no score yet, in pieces: each twice the size of the last if that took under five seconds.
void score_rest(UsingModel& use, const UseOptions& options, const ScoreOptions& wanted, UnfinishedScores* unfinished,
                std::vector<Score>& scores) {
  Progress progress(stderr, options.progress, "score", "data", use.count());
  progress.start_at(static_cast<int>(scores.size()));
  int most = evaluation_group * options.threads;
  use.data().each(static_cast<int>(scores.size()), use.count(), [&](const DataSet& piece, int first) {
    while (static_cast<int>(scores.size()) < first + piece.size()) {
      const int begin = static_cast<int>(scores.size()), end = std::min(first + piece.size(), begin + most);
      const Stopwatch watch;
      const auto some = scores_of(use, wanted, piece.slice(begin - first, end - first), begin, [&](int done) {
        use.check_stop();
        progress.update(begin + done, "");
      });
      scores.insert(scores.end(), some.begin(), some.end());
      if (unfinished) unfinished->add(some);
      if (constexpr double enough = 5; watch.seconds() < enough) most = std::min(2 * most, 1 << 20);
    }
  });
}

void write(const UseOptions& options, const std::vector<std::string>& columns, const std::vector<Score>& scores) {
  RowFile out(
      options.out, options.otherwise,
      {.rows = static_cast<int>(scores.size()), .shape = {static_cast<int>(columns.size())}, .columns = columns});
  for (const Score& score : scores) {
    std::vector<double> row = {static_cast<double>(score.datum), score.log_likelihood, score.error,
                               score.effective_samples};
    if (score.exact) row.push_back(*score.exact);
    out.row(row);
  }
  out.close();
}

}  // namespace

std::vector<Score> score_data(const UseOptions& options, const ScoreOptions& wanted) {
  if (!options.out.empty()) RowFile::check_name(options.out);
  UsingModel use(options);
  DataSum sum;
  const bool file = !options.out.empty();
  use.load_data(file ? [&](const DataSet& data, int first) { sum.add(data, first); } : DataStream::Work());
  std::vector<std::string> columns = {"datum", "log_likelihood", "error", "effective_samples"};
  if (use.networks().config().train.model.exact_evidence() && wanted.method == ScoreMethod::importance)
    columns.push_back("exact");
  std::unique_ptr<UnfinishedScores> unfinished;
  std::vector<Score> scores;
  if (file) {
    const ScoreIdentity identity{settings_text(use, wanted), model_sum(use.networks()), sum.hex()};
    unfinished = std::make_unique<UnfinishedScores>(options.out, identity, evaluation_group, wanted.resume);
    scores = unfinished->found();
    if (wanted.resume)
      use.note(
          scores.empty()
              ? fmt::format("{}: nothing to continue; starting from the beginning", options.out.string())
              : fmt::format("{}: continuing after {} of {} data", options.out.string(), scores.size(), use.count()));
  }
  score_rest(use, options, wanted, unfinished.get(), scores);
  if (wanted.sorted) std::ranges::stable_sort(scores, {}, &Score::log_likelihood);
  write(options, columns, scores);
  if (unfinished) unfinished->remove();
  return scores;
}

}  // namespace hone
