#include "app/data/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hone/base/error.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

DataFile idx_images(std::string stem, int items, std::string sha256) {
  const std::string name = stem + "-images-idx3-ubyte";
  return {
      .name = name, .published = name + ".gz", .format = FileFormat::idx, .items = items, .sha256 = std::move(sha256)};
}

// Nobody publishes a checksum of these files; they are checked by their structure.
DataFile amat(std::string split, int items) {
  const std::string name = "binarized_mnist_" + split + ".amat";
  return {.name = name, .published = name, .format = FileFormat::amat, .items = items, .sha256 = ""};
}

std::vector<DataSetInfo> make_registry() {
  return {
      {.name = "mnist",
       .description =
           "handwritten digits; binarized by the fixed files of binarized-mnist if found, else at random with a seed",
       .shape = {28, 28},
       .train = 50'000,
       .validation = 10'000,
       .test = 10'000,
       .files = {idx_images("train", 60'000, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
                 idx_images("t10k", 10'000, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7")},
       .servers = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                   "https://storage.googleapis.com/cvdf-datasets/mnist/"},
       .package = ""},
      {.name = "binarized-mnist",
       .description = "handwritten digits, in Larochelle's fixed binarization",
       .shape = {28, 28},
       .train = 50'000,
       .validation = 10'000,
       .test = 10'000,
       .files = {amat("train", 50'000), amat("valid", 10'000), amat("test", 10'000)},
       .servers = {"https://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"},
       .package = ""},
      {.name = "fashion-mnist",
       .description = "pieces of clothing; binarized by a threshold of one half",
       .shape = {28, 28},
       .train = 60'000,
       .validation = 0,
       .test = 10'000,
       .files = {idx_images("train", 60'000, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
                 idx_images("t10k", 10'000, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b")},
       .servers = {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                   "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"},
       .package = "dataset-fashion-mnist"},
      {.name = "synthetic",
       .description = "bars and ovals, binary, generated from a seed",
       .shape = {28, 28},
       .train = 5'000,
       .validation = 1'000,
       .test = 1'000,
       .files = {},
       .servers = {},
       .package = ""},
  };
}

}  // namespace

std::span<const DataSetInfo> known_data_sets() {
  static const std::vector<DataSetInfo> registry = make_registry();
  return registry;
}

bool is_known_data_set(std::string_view name) {
  return std::ranges::any_of(known_data_sets(), [&](const DataSetInfo& info) { return info.name == name; });
}

const DataSetInfo& data_set_named(std::string_view name) {
  std::vector<std::string> names;
  for (const DataSetInfo& info : known_data_sets()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  throw InputError(
      fmt::format("there is no data set '{}': expected one of {}{}", name, join(names), did_you_mean(name, names)));
}

std::uint64_t content_bytes(const DataSetInfo& info, const DataFile& file) {
  const auto values = static_cast<std::uint64_t>(file.items) * static_cast<std::uint64_t>(info.shape.pixels());
  // A number and its blank take two bytes, and a line may end with one or two more.
  return file.format == FileFormat::idx ? 16 + values : 2 * values + 2 * static_cast<std::uint64_t>(file.items);
}

}  // namespace hone
