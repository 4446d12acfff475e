#include "app/run/use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "app/data/load.hpp"
#include "app/run/rows.hpp"
#include "app/run/train.hpp"
#include "hone/assess/importance.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int at_once = 16 * TrainedNetworks::block;  // data that are computed before their rows are written

// A model and, where they are needed, the data to use it on.
class Use {
 public:
  explicit Use(const UseOptions& options) : options_(options) {
    RunToUse run = read_run(options.run, options.data_dir, options.threads, say(), options.which);
    networks_ = std::make_unique<TrainedNetworks>(run.config, std::move(run.checkpoint), options.threads);
  }

  TrainedNetworks& networks() { return *networks_; }
  const DataSet& data() const { return data_; }
  int latent() const { return networks_->latent(); }

  void load_data() {
    const std::string& name = options_.data;
    if (name == "train" || name == "validation" || name == "test") {
      if (!options_.binarization.empty())
        throw InputError("--binarization is for files; the run's own data are binarized as in training");
      const DataSplits splits = load_run_data(networks_->config(), options_.data_dir);
      data_ = split_of(splits, name);
    } else {
      data_ = load_more_data(request());
    }
    if (options_.points && *options_.points < data_.size()) data_ = data_.slice(0, *options_.points);
    try {
      networks_->check(data_);
    } catch (const DataError& error) {
      throw InputError(fmt::format("{}: {}", name, error.what()));
    }
  }

  // work(range) for ranges that cover `count` items, telling how far it is.
  void in_ranges(const std::string& label, int count, const std::function<void(Range)>& work) {
    Progress progress(stderr, options_.progress, label, "data", count);
    for (int begin = 0; begin < count; begin += at_once) {
      check_stop();
      const Range range{begin, std::min(count, begin + at_once)};
      work(range);
      progress.update(range.end, "");
    }
  }

  void check_stop() const {
    if (options_.stop && *options_.stop != 0) throw Stopped();
  }

  // Refined draws (D, range); draw −1 is the only one.
  Matrix<double> refined(Range range, int steps, int draw) const {
    Matrix<double> z(latent(), range.size());
    const std::uint64_t seed = draw < 0 ? options_.seed : TrainedNetworks::draw_seed(options_.seed, draw);
    networks_->refine(data_, range, {steps, seed}, z, [this](int) { check_stop(); });
    return z;
  }
  Matrix<double> means(Range range, Matrix<double>* sds = nullptr) const {
    Matrix<double> mean(latent(), range.size()), sd(latent(), range.size());
    networks_->encode(data_, range, mean, sd);
    if (sds) *sds = std::move(sd);
    return mean;
  }

 private:
  std::function<void(const std::string&)> say() const {
    return options_.say ? options_.say : [](const std::string&) {};
  }
  DataRequest request() const {
    const TrainRunConfig& config = networks_->config();
    Binarization binarization = config.binarization;
    if (binarization == Binarization::automatic) binarization = usual_binarization(config.data);
    if (!options_.binarization.empty()) binarization = binarization_named(options_.binarization);
    return {.name = options_.data,
            .binarization = binarization,
            .seed = config.data_seed,
            .shape = config.shape.value_or(std::vector<int>()),
            .missing = config.train.model.missing,
            .labels = config.labels == "own" ? "" : config.labels};
  }

  const UseOptions& options_;
  std::unique_ptr<TrainedNetworks> networks_;
  DataSet data_;
};

std::vector<std::string> draw_columns(int draws, int latent) {
  if (draws == 1) return numbered("z", latent);
  std::vector<std::string> names;
  for (int k = 1; k <= draws; ++k)
    for (const std::string& name : numbered(fmt::format("draw_{}_z", k), latent)) names.push_back(name);
  return names;
}

void write_columns(const Matrix<double>& columns, Rows& out) {
  for (int c = 0; c < columns.cols(); ++c) out.row(columns.column(c));
}

// Rows of data of the model: a table, or a picture if the name says so.
std::unique_ptr<Rows> rows_of_data(const UseOptions& options, Use& use, int count) {
  const ImageShape shape = use.networks().data().shape;
  if (options.out.extension() == ".png") return std::make_unique<PictureFile>(options.out, shape, count);
  std::vector<int> sizes = {shape.rows, shape.cols};
  if (shape.channels > 1) sizes.push_back(shape.channels);
  if (shape.rows == 1 && shape.channels == 1) sizes = {shape.cols};
  return std::make_unique<RowFile>(
      options.out, options.otherwise,
      RowFile::Layout{
          .rows = count, .shape = sizes, .columns = numbered("x", shape.pixels()), .type = NumberType::float32});
}

Matrix<double> points_in(const fs::path& file, int latent) {
  const DataSet points = read_data_file(file.string());
  if (points.dimension() != latent)
    throw InputError(fmt::format("--z: {}: expected points of {} numbers, as many as z has, found {}", file.string(),
                                 latent, points.dimension()));
  std::vector<int> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  Matrix<double> z(latent, points.size());
  points.expand(all, z.view());
  return z;
}

Matrix<double> line_between(Use& use, std::pair<int, int> ends, int count) {
  use.load_data();
  for (const int datum : {ends.first, ends.second})
    if (datum < 0 || datum >= use.data().size())
      throw InputError(
          fmt::format("--between: {} is no datum; expected numbers from 0 to {}", datum, use.data().size() - 1));
  if (count < 2) throw InputError("--between: expected at least two points, -n 2");
  const Matrix<double> from = use.means({ends.first, ends.first + 1}), to = use.means({ends.second, ends.second + 1});
  Matrix<double> z(use.latent(), count);
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < z.rows(); ++d) {
      const double share = static_cast<double>(c) / (count - 1);
      z(d, c) = (1 - share) * from(d, 0) + share * to(d, 0);
    }
  return z;
}

double error_of(const ImportanceEstimate& estimate, int samples) {
  return std::sqrt(relative_variance(estimate, samples));
}

std::vector<Score> scores_of(Use& use, const UseOptions& options, const ScoreOptions& wanted) {
  Progress progress(stderr, options.progress, "score", "data", use.data().size());
  const auto watch = [&](int done) {
    use.check_stop();
    progress.update(done, "");
  };
  std::vector<Score> scores;
  const auto add = [&](const ImportanceEstimate& estimate, int samples, std::optional<double> exact) {
    scores.push_back({.datum = static_cast<int>(scores.size()),
                      .log_likelihood = estimate.log_likelihood,
                      .error = error_of(estimate, samples),
                      .effective_samples = estimate.effective_samples,
                      .exact = exact});
  };
  if (wanted.method == ScoreMethod::annealing) {
    for (const AnnealedPoint& point : use.networks().anneal(use.data(), wanted.annealing, watch))
      add(point.estimate, wanted.annealing.chains, {});
  } else {
    for (const PointEvaluation& point : use.networks().evaluate(use.data(), wanted.importance, watch))
      add(point.mixture, proposal_count * wanted.importance.samples, point.exact);
  }
  return scores;
}

}  // namespace

int encode_data(const UseOptions& options, const EncodeOptions& wanted) {
  if (wanted.refine > 0 && !wanted.sd.empty())
    throw InputError("--sd writes the standard deviations of q; with --refine, take those of several --draws");
  if (wanted.refine == 0 && wanted.draws > 1) throw InputError("--draws needs --refine");
  Use use(options);
  use.load_data();
  const int count = use.data().size(), latent = use.latent();
  std::vector<int> shape = {latent};
  if (wanted.draws > 1) shape.insert(shape.begin(), wanted.draws);
  RowFile out(options.out, options.otherwise,
              {.rows = count, .shape = shape, .columns = draw_columns(wanted.draws, latent)});
  std::optional<RowFile> sd_file;
  if (!wanted.sd.empty())
    sd_file.emplace(wanted.sd, nullptr,
                    RowFile::Layout{.rows = count, .shape = {latent}, .columns = numbered("sd", latent)});
  use.in_ranges(wanted.refine > 0 ? "refine" : "encode", count, [&](Range range) {
    if (wanted.refine == 0) {
      Matrix<double> sd;
      write_columns(use.means(range, &sd), out);
      if (sd_file) write_columns(sd, *sd_file);
      return;
    }
    Matrix<double> all(latent * wanted.draws, range.size());
    for (int k = 0; k < wanted.draws; ++k) {
      const Matrix<double> z = use.refined(range, wanted.refine, wanted.draws == 1 ? -1 : k);
      for (int c = 0; c < range.size(); ++c) std::ranges::copy(z.column(c), all.column(c).begin() + k * latent);
    }
    write_columns(all, out);
  });
  out.close();
  if (sd_file) sd_file->close();
  return count;
}

int reconstruct_data(const UseOptions& options, int refine) {
  Use use(options);
  use.load_data();
  const int count = use.data().size();
  const auto out = rows_of_data(options, use, count);
  use.in_ranges("reconstruct", count, [&](Range range) {
    const Matrix<double> z = refine > 0 ? use.refined(range, refine, -1) : use.means(range);
    Matrix<double> x(use.networks().pixels(), range.size());
    use.networks().decode(z, x);
    write_columns(x, *out);
  });
  out->close();
  return count;
}

int sample_model(const UseOptions& options, const SampleOptions& wanted) {
  Use use(options);
  Matrix<double> given;
  if (!wanted.z.empty()) given = points_in(wanted.z, use.latent());
  if (wanted.between) given = line_between(use, *wanted.between, wanted.count);
  const int count = given.cols() > 0 ? given.cols() : wanted.count;
  const auto out = rows_of_data(options, use, count);
  use.in_ranges("sample", count, [&](Range range) {
    Matrix<double> z(use.latent(), range.size()), x(use.networks().pixels(), range.size());
    if (given.cols() > 0)
      std::ranges::copy(std::as_const(given).view().columns(range.begin, range.end).flat(), z.view().flat().begin());
    else
      use.networks().draw_z(options.seed, range.begin, z);
    if (wanted.kind == Sampled::means)
      use.networks().decode(z, x);
    else
      use.networks().draw_x(options.seed, range.begin, z, x);
    write_columns(x, *out);
  });
  out->close();
  return count;
}

std::vector<Score> score_data(const UseOptions& options, const ScoreOptions& wanted) {
  Use use(options);
  use.load_data();
  const bool exact = use.networks().config().train.model.exact_evidence() && wanted.method == ScoreMethod::importance;
  std::vector<std::string> columns = {"datum", "log_likelihood", "error", "effective_samples"};
  if (exact) columns.push_back("exact");
  RowFile out(options.out, options.otherwise,
              {.rows = use.data().size(), .shape = {static_cast<int>(columns.size())}, .columns = columns});
  std::vector<Score> scores = scores_of(use, options, wanted);
  if (wanted.sorted) std::ranges::stable_sort(scores, {}, &Score::log_likelihood);
  for (const Score& score : scores) {
    std::vector<double> row = {static_cast<double>(score.datum), score.log_likelihood, score.error,
                               score.effective_samples};
    if (exact) row.push_back(*score.exact);
    out.row(row);
  }
  out.close();
  return scores;
}

}  // namespace hone
