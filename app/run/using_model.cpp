#include "app/run/using_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/data/load.hpp"
#include "app/run/rows.hpp"
#include "app/run/trained_model.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

constexpr int block = TrainedNetworks::block;

}  // namespace

UsingModel::UsingModel(const UseOptions& options) : options_(options) {
  RunToUse run = read_run(
      options.run, options.data_dir, options.threads, [this](const std::string& text) { say(text); }, options.which);
  networks_ = std::make_unique<TrainedNetworks>(run.config, std::move(run.checkpoint), options.threads);
}

void UsingModel::load_data(const DataStream::Work& watch) {
  const DataStream::Work work = [&](const DataSet& data, int first) { check(data, first, watch); };
  if (const std::string& name = options_.data; name == "train" || name == "validation" || name == "test") {
    if (!options_.binarization.empty())
      throw InputError("--binarization is for files; the run's own data are binarized as in training");
    if (!options_.header.empty()) throw InputError("--header is for files; the run's own data are read as in training");
    const DataSplits splits = load_run_data(networks_->config(), options_.data_dir);
    DataSet data = split_of(splits, name, "; name a file of data, or train: those that the model was trained on");
    work(data, 0);
    data_.emplace(std::move(data), block);
  } else {
    refuse_to_replace(options_.data, options_.out, "--out");
    data_.emplace(request(), block, work);
    if (data_->file_of_bits() && (options_.binarization == "threshold" || options_.binarization == "stochastic"))
      throw InputError(fmt::format("--binarization {}: the values of {} are zeros and ones already; leave it out",
                                   options_.binarization, options_.data));
  }
  count_ = std::min(data_->size(), options_.points.value_or(data_->size()));
}

void UsingModel::check(const DataSet& data, int first, const DataStream::Work& watch) {
  check_stop();
  if (first > 0 && !std::exchange(long_told_, true)) note(fmt::format("{}: checking all values first", options_.data));
  const int count = std::min(data.size(), options_.points.value_or(first + data.size()) - first);
  if (count <= 0) return;
  const DataSet used = count < data.size() ? data.slice(0, count) : data;
  try {
    networks_->check(packed_if_binary(used), first);
  } catch (const DataError& error) {
    throw InputError(fmt::format("{}: {}", options_.data, error.what()));
  }
  if (watch) watch(used, first);
}

DataSet UsingModel::datum(int index) const {
  DataSet found;
  data_->each(index, index + 1,
              [&](const DataSet& data, int first) { found = data.slice(index - first, index - first + 1); });
  return found;
}

void UsingModel::each(const std::string& label, const DataStream& stream, int count,
                      const DataStream::Work& work) const {
  Progress progress(stderr, options_.progress, label, "data", count);
  stream.each(0, count, [&](const DataSet& data, int first) {
    check_stop();
    work(data, first);
    progress.update(first + data.size(), "");
  });
}

void UsingModel::in_ranges(const std::string& label, int count, int numbers,
                           const std::function<void(Range)>& work) const {
  Progress progress(stderr, options_.progress, label, "data", count);
  const int at_once = DataStream::at_once(block, numbers);
  for (int begin = 0; begin < count; begin += at_once) {
    check_stop();
    const Range range{begin, std::min(count, begin + at_once)};
    work(range);
    progress.update(range.end, "");
  }
}

void UsingModel::check_stop() const {
  if (options_.stop && *options_.stop != 0) throw Stopped();
}

void UsingModel::say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

void UsingModel::note(const std::string& text) const {
  if (options_.progress != ProgressStyle::quiet) say(text);
}

Matrix<double> UsingModel::refined(const DataSet& data, int first, int steps, int draw) const {
  Matrix<double> z(latent(), data.size());
  const std::uint64_t seed = draw < 0 ? options_.seed : TrainedNetworks::draw_seed(options_.seed, draw);
  networks_->refine(data, {0, data.size()}, {steps, seed, first}, z, [this](int) { check_stop(); });
  return z;
}

Matrix<double> UsingModel::means(const DataSet& data, Matrix<double>* sds) const {
  Matrix<double> mean(latent(), data.size()), sd(latent(), data.size());
  networks_->encode(data, {0, data.size()}, mean, sd);
  if (sds) *sds = std::move(sd);
  return mean;
}

DataRequest UsingModel::request() const {
  const TrainRunConfig& config = networks_->config();
  Binarization binarization = config.binarization;
  if (binarization == Binarization::automatic) binarization = usual_binarization(config.data);
  if (!options_.binarization.empty()) binarization = binarization_named(options_.binarization);
  return {.name = options_.data,
          .binarization = binarization,
          .seed = config.data_seed,
          .shape = config.shape.value_or(std::vector<int>()),
          .missing = config.train.model.missing,
          .labels = config.labels == "own" ? "" : config.labels,
          .header = options_.header.empty() ? config.header : csv_header_named(options_.header)};
}

}  // namespace hone
