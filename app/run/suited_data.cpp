#include "app/run/suited_data.hpp"

#include <fmt/format.h>

#include "app/run/train_health.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {
namespace {

// Zeros and ones of a file that has other values too count as bits.
void check(const ModelConfig& model, DataSet data, int first) {
  if (model.density() == Density::bernoulli) data = packed_if_binary(std::move(data));
  check_data(model.density(), {data.dimension(), model.categories}, model.missing, data, first);
  check_scale(model.density(), data, first);
}

// The complaint about data that do not suit the model, with the datum as the file counts it; `what` if it names no
// datum.
std::string fault_in_file(const ModelConfig& model, const DataSet& part, const std::vector<int>& rows,
                          const std::string& what) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int datum = static_cast<int>(i);
    try {
      check(model, part.slice(datum, datum + 1), rows[i]);
    } catch (const DataError& error) {
      return error.what();
    }
  }
  return what;
}

struct Part {
  std::string key, file;  // of the setting; own: data that were part of the key `data`
  const DataSet& data;
  const std::vector<int>& rows;
};

void check_part(const TrainRunConfig& config, const DataSplits& whole, const Part& part) {
  if (part.data.size() == 0) return;
  try {
    check(config.train.model, part.data, 0);
  } catch (const DataError& error) {
    const std::string what = fault_in_file(config.train.model, part.data, part.rows, error.what());
    if (part.file != "own") throw KeyError(part.key, part.file + ": " + what);
    const bool taken = !part.rows.empty();  // from a file of ours; otherwise the data were given as this part
    throw KeyError(taken ? "data" : part.key, taken ? whole.name + ": " + what : what);
  }
}

}  // namespace

void check_parts(const TrainRunConfig& config, const DataSplits& data) {
  check_part(config, data, {"test.data", config.test.data, data.test, data.rows.test});
  check_part(config, data, {"validation.data", config.validation.data, data.validation, data.rows.validation});
}

KeyError unsuited_training_data(const TrainRunConfig& config, const DataSplits& data, const std::string& what) {
  const bool said = data.origin.starts_with(data.name + ",");  // a file of one's own, with how it was binarized
  return KeyError(config.binarization == Binarization::none ? "binarization" : "data",
                  fmt::format("{}: {}", said ? data.origin : fmt::format("{} ({})", data.name, data.origin),
                              fault_in_file(config.train.model, data.train, data.rows.train, what)));
}

std::string scaling_of(const TrainRunConfig& config, const DataSet& train) {
  const ModelConfig& model = config.train.model;
  const std::string wide = too_wide(config, train);
  const std::string who = model.kind == ModelKind::gaussian_mf
                              ? "gaussian-mf"
                              : fmt::format("the likelihood {}", facts_of(model.density()).name);
  return who + " subtracts the mean of the training data; the checkpoint keeps it (data.mean). " +
         (model.density() == Density::gaussian
              ? "Its variance is 0.01 in the units of the data, which are not scaled"
              : "Data are not scaled; standard deviations begin near 0.7 and stay above 0.01") +
         (wide.empty() ? "" : ". Divide " + wide);
}

}  // namespace hone
