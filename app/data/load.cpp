#include "app/data/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "app/data/check.hpp"
#include "app/data/labels.hpp"
#include "app/data/synthetic.hpp"
#include "hone/base/error.hpp"
#include "hone/base/random.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::string in_words(Binarization binarization, std::uint64_t seed) {
  switch (binarization) {
    case Binarization::threshold:
      return "binarized by the threshold one half";
    case Binarization::stochastic:
      return fmt::format("binarized once at random with seed {}", seed);
    case Binarization::automatic:
    case Binarization::none:
      break;
  }
  return "not binarized";
}

Binarization usual_for_images(const std::string& data_set) {
  return data_set == "fashion-mnist" ? Binarization::threshold : Binarization::stochastic;
}

// Bits cannot be binarized again, so asking for it is a mistake.
void refuse_to_binarize(const DataRequest& request) {
  if (request.binarization != Binarization::threshold && request.binarization != Binarization::stochastic) return;
  throw KeyError("binarization", fmt::format("the data of {} are already bits, so {} has no effect; leave it at auto",
                                             request.name, name_of(request.binarization)));
}

// The threshold of binarize_threshold, in the units of the data.
std::optional<double> threshold_for(const DataSet& data, Binarization binarization) {
  if (binarization != Binarization::threshold || data.binary()) return {};
  return data.bytes().empty() ? 0.5 : 127.5;
}

DataSplits load_images(const DataSetInfo& info, const DataRequest& request, const FoundData& found) {
  const auto read = [&](std::size_t file, std::uint32_t part) {
    return binarized(read_known_file(info, info.files[file], found.files[file]), request.binarization,
                     {request.seed, part});
  };
  const DataSet training = read(0, 0);
  const std::string binarization = in_words(request.binarization, request.seed);
  return {info.name,
          fmt::format("IDX images of {}, {}", found.folder.string(), binarization),
          binarization,
          training.slice(0, info.train),
          training.slice(info.train, info.train + info.validation),
          read(1, 1),
          request.binarization == Binarization::threshold ? std::optional(127.5) : std::nullopt,
          own_labels(info, found)};
}

DataSplits load_fixed_bits(const DataSetInfo& info, const FoundData& found, const std::string& name) {
  const auto read = [&](std::size_t file) { return read_known_file(info, info.files[file], found.files[file]); };
  return {name,
          fmt::format("the fixed binarization in the .amat files of {}", found.folder.string()),
          "the fixed binarization of the .amat files",
          read(0),
          read(1),
          read(2)};
}

DataSplits load_synthetic(const DataSetInfo& info, std::uint64_t seed) {
  const int validation = info.train + info.validation;
  return {info.name,
          fmt::format("bars and ovals generated with seed {}", seed),
          "made as bits",
          synthetic_data(seed, 0, info.train),
          synthetic_data(seed, info.train, validation),
          synthetic_data(seed, validation, validation + info.test)};
}

// The .amat files may be in their own folder or next to the images.
std::optional<FoundData> find_fixed_bits(const DataSetInfo& fixed, std::span<const Place> places) {
  DataSetInfo beside = fixed;
  beside.name = "mnist";
  for (const Place& place : places)
    for (const DataSetInfo& info : {fixed, beside})
      if (auto found = find_data(info, {&place, 1})) return found;
  return std::nullopt;
}

DataSplits load_file(const DataRequest& request) {
  std::vector<std::string> labels;
  DataSet data = read_data_file(request.name, file_request(request), &labels);
  if (data.binary()) refuse_to_binarize(request);
  DataSplits splits = splits_of(request, std::move(data));
  splits.labels.train = std::move(labels);
  return splits;
}

bool is_label_file(const std::string& labels) {
  std::error_code ignored;
  return labels.find('/') != std::string::npos || fs::is_regular_file(labels, ignored);
}

void add_labels(DataSplits& data, const DataRequest& request) {
  if (request.labels.empty()) return;
  if (is_data_path(request.name) && !data.labels.train.empty()) return;  // a column of the file
  if (!is_label_file(request.labels))
    throw KeyError("labels", fmt::format("{} has no column '{}', and there is no such file; expected a column of a "
                                         ".csv file with a header, or the path of a file of labels",
                                         data.name, request.labels));
  try {
    data.labels.train = read_labels(request.labels, data.train.size());
  } catch (const InputError& error) {
    throw KeyError("labels", error.what());
  }
}

// The data at `indices`, in this order; bits and bytes stay what they are.
DataSet gathered(const DataSet& data, const std::vector<int>& indices) {
  if (data.bits()) {
    BitRows rows(data.dimension());
    for (const int i : indices) rows.append(*data.bits(), i, i + 1);
    return DataSet(std::move(rows), data.shape());
  }
  const auto dimension = static_cast<std::size_t>(data.dimension());
  if (const auto bytes = data.bytes(); !bytes.empty()) {
    std::vector<std::uint8_t> some;
    some.reserve(dimension * indices.size());
    for (const int i : indices) {
      const auto datum = bytes.subspan(static_cast<std::size_t>(i) * dimension, dimension);
      some.insert(some.end(), datum.begin(), datum.end());
    }
    return DataSet(std::move(some), data.shape(), data.scale());
  }
  std::vector<double> values(dimension * indices.size());
  data.expand(indices, MatrixView<double>(values.data(), data.dimension(), static_cast<int>(indices.size())));
  return DataSet(std::move(values), data.shape());
}

std::vector<std::string> gathered(const std::vector<std::string>& labels, const std::vector<int>& indices) {
  std::vector<std::string> some;
  if (!labels.empty())
    for (const int i : indices) some.push_back(labels[static_cast<std::size_t>(i)]);
  return some;
}

std::vector<int> gathered(const std::vector<int>& rows, const std::vector<int>& indices) {
  if (rows.empty()) return indices;
  std::vector<int> some;
  for (const int i : indices) some.push_back(rows[static_cast<std::size_t>(i)]);
  return some;
}

// A part to make of training data.
struct HeldOut {
  std::string key, name;  // of the setting; "test", "validation"
  double share;
  std::uint32_t stream;  // of random numbers
  DataSet& data;
  std::vector<std::string>& labels;
  std::vector<int>& rows;
};

// Moves a share of the training data to another part, chosen at random. Both keep their order.
void hold_out(DataSplits& data, const HeldOut& part, std::uint64_t seed) {
  if (part.data.size() > 0)
    throw KeyError(part.key, fmt::format("{} has {} data of its own; leave it out", data.name, part.name));
  const int count = data.train.size(), held = static_cast<int>(std::lround(part.share * count));
  if (held < 1 || held >= count)
    throw KeyError(part.key, fmt::format("{} of {} data would leave no {} data", part.share, count,
                                         held < 1 ? part.name : "training"));
  std::vector<double> keys(static_cast<std::size_t>(count));
  PhiloxSource(seed).uniforms({Purpose::shuffle, assessment_iteration, part.stream}, keys);
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return keys[static_cast<std::size_t>(i)]; });
  std::vector<int> other(order.begin(), order.begin() + held), train(order.begin() + held, order.end());
  std::ranges::sort(other);
  std::ranges::sort(train);
  part.rows = gathered(data.rows.train, other);
  data.rows.train = gathered(data.rows.train, train);
  part.data = gathered(data.train, other);
  part.labels = gathered(data.labels.train, other);
  data.labels.train = gathered(data.labels.train, train);
  data.train = gathered(data.train, train);
  data.origin += fmt::format(", {} of {} held out for {} with seed {}", held, count,
                             part.name == "test" ? "tests" : part.name, seed);
}

// One part of data from a file or from memory.
DataSet part_of(const DataRequest& request, const std::string& name, DataSet data, std::uint32_t part) {
  try {
    return binarized(std::move(data), request.binarization, {request.seed, part});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

// Makes the parts that are shares of the training data. Those with data of their own are still empty.
void hold_out(DataSplits& data, const DataRequest& request) {
  if (!request.test.empty() && request.split > 0)
    throw KeyError("split", "test.data names the test data; leave one of the two out");
  if (!request.validation.empty() && request.validation_split > 0)
    throw KeyError("validation.split", "validation.data names the validation data; leave one of the two out");
  if (request.split > 0)
    hold_out(data, {"split", "test", request.split, 0, data.test, data.labels.test, data.rows.test}, request.seed);
  if (request.validation_split > 0)
    hold_out(data,
             {"validation.split", "validation", request.validation_split, 1, data.validation, data.labels.validation,
              data.rows.validation},
             request.seed);
}

// Reads a part that has a file of its own.
void read_part(const DataRequest& request, const std::string& key, const std::string& file, std::uint32_t part,
               DataSet& data, std::vector<std::string>& labels) {
  try {
    labels.clear();
    data = part_of(request, file, read_data_file(file, file_request(request), &labels), part);
  } catch (const InputError& error) {
    throw KeyError(key, error.what());
  }
}

void check_width(const DataSet& train, const DataSet& part, const std::string& key) {
  if (part.size() > 0 && part.dimension() != train.dimension())
    throw KeyError(
        key, fmt::format("a datum has {} values, and {} in the training data", part.dimension(), train.dimension()));
}

}  // namespace

Binarization usual_binarization(const std::string& name) {
  return name == "mnist" || name == "fashion-mnist" ? usual_for_images(name) : Binarization::none;
}

bool is_data_path(const std::string& name) {
  if (is_known_data_set(name)) return false;
  std::error_code ignored;
  return name.find('/') != std::string::npos || fs::path(name).has_extension() || name.ends_with("-ubyte") ||
         fs::is_directory(name, ignored);
}

const DataSet& split_of(const DataSplits& data, const std::string& name, const std::string& advice) {
  const DataSet* split = name == "train" ? &data.train : name == "validation" ? &data.validation : nullptr;
  if (name == "test") split = &data.test;
  if (!split) throw InputError(fmt::format("--split '{}': expected train, validation or test", name));
  if (split->size() == 0)
    throw InputError(fmt::format("{} has no split '{}': there are no such data{}", data.name, name, advice));
  return *split;
}

FileRequest file_request(const DataRequest& request) {
  const bool path = request.labels.find('/') != std::string::npos;
  return {.shape = request.shape,
          .missing = request.missing,
          .label = path ? "" : request.labels,
          .header = request.header,
          .planes = request.planes};
}

DataSplits load_data(const DataRequest& request) {
  const bool path = is_data_path(request.name);
  if (std::error_code ignored; !path && !is_known_data_set(request.name) && fs::is_regular_file(request.name, ignored))
    throw KeyError(
        "data",
        fmt::format("the file {0} has no ending that names a format (docs/data.md); IDX images: ./{0}", request.name));
  if (!path && !request.shape.empty())
    throw KeyError("shape", fmt::format("{} has its own; leave it out", request.name));
  DataSplits data =
      path ? load_file(request) : load_data(data_set_named(request.name), request, search_places(request.data_dir));
  add_labels(data, request);
  hold_out(data, request);
  if (!request.test.empty()) read_part(request, "test.data", request.test, 1, data.test, data.labels.test);
  if (!request.validation.empty())
    read_part(request, "validation.data", request.validation, 2, data.validation, data.labels.validation);
  check_width(data.train, data.test, "test.data");
  check_width(data.train, data.validation, "validation.data");
  return data;
}

DataSplits splits_of(const DataRequest& request, DataSet train) {
  const bool bits = train.binary();
  const std::string binarization = bits ? "zeros and ones as they are" : in_words(request.binarization, request.seed);
  DataSplits data{request.name, fmt::format("{}, {}", request.name, binarization), binarization, {}, {}, {}};
  data.threshold = threshold_for(train, request.binarization);
  data.train = part_of(request, request.name, std::move(train), 0);
  return data;
}

DataSplits splits_of(const DataRequest& request, DataSet train, DataSet test, DataSet validation) {
  DataSplits data = splits_of(request, std::move(train));
  if (is_label_file(request.labels)) add_labels(data, request);
  hold_out(data, request);
  if (test.size() > 0) data.test = part_of(request, "the test data", std::move(test), 1);
  if (validation.size() > 0) data.validation = part_of(request, "the validation data", std::move(validation), 2);
  check_width(data.train, data.test, "test.data");
  check_width(data.train, data.validation, "validation.data");
  return data;
}

DataSplits load_data(const DataSetInfo& info, const DataRequest& request, std::span<const Place> places) {
  const bool bits = info.files.empty() || info.files.front().format == FileFormat::amat;
  if (bits) refuse_to_binarize(request);
  if (info.files.empty()) return load_synthetic(info, request.seed);
  if (bits) return load_fixed_bits(info, require_data(info, places), info.name);
  DataRequest resolved = request;
  if (request.binarization == Binarization::automatic) {
    resolved.binarization = usual_for_images(info.name);
    const DataSetInfo& fixed = data_set_named("binarized-mnist");
    if (info.name == "mnist")
      if (const auto found = find_fixed_bits(fixed, places)) return load_fixed_bits(fixed, *found, info.name);
  }
  return load_images(info, resolved, require_data(info, places));
}

}  // namespace hone
