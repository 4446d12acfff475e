#include "app/data/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/data/idx.hpp"
#include "app/data/npy.hpp"
#include "app/data/text_lines.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_of(const NpyMatrix& matrix, const std::string& file) {
  if (matrix.cols != 1) throw InputError(fmt::format("{}: expected one label per datum, an array (N)", file));
  std::vector<std::string> labels;
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) {
          if (static_cast<double>(value) != std::floor(static_cast<double>(value)))
            throw InputError(fmt::format("{}: label {} is {}; expected integers", file, labels.size(), value));
          labels.push_back(fmt::format("{:.0f}", static_cast<double>(value)));
        }
      },
      matrix.values);
  return labels;
}

std::vector<std::string> lines_of(ByteSource& source, int count) {
  TextLines lines(source);
  std::vector<std::string> labels;
  for (std::string line; lines.next(line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.push_back(shown(line));
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.size() == static_cast<std::size_t>(count) + 1) labels.erase(labels.begin());  // a header
  return labels;
}

std::vector<std::string> labels_of(ByteSource& source, int count) {
  fs::path name = source.name();
  if (name.extension() == ".gz") name.replace_extension();
  if (name.extension() == ".npy") return texts_of(read_npy(source, {.least_sizes = 1}), source.name());
  if (!name.string().ends_with("-ubyte")) return lines_of(source, count);
  const IdxArray array = read_idx(source);
  if (array.dimensions.size() != 1)
    source.fail(3, fmt::format("expected labels, an array of one dimension, found {}", array.dimensions.size()));
  std::vector<std::string> labels;
  for (const std::uint8_t value : array.values) labels.push_back(std::to_string(value));
  return labels;
}

// The label file beside a file of images, plain or .gz; empty if there is none.
std::vector<std::string> beside(const fs::path& images, int count) {
  std::string name = images.string();
  const std::size_t at = name.rfind("images-idx3");
  if (at == std::string::npos) return {};
  name.replace(at, 11, "labels-idx1");
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const std::string& file : {name, name + ".gz"})
    if (fs::exists(file)) return read_labels(file, count);
  return {};
}

}  // namespace

std::vector<std::string> read_labels(const std::string& file, int count) {
  ByteSource source{fs::path(file)};
  return read_labels(source, count);
}

std::vector<std::string> read_labels(ByteSource& source, int count) {
  std::vector<std::string> labels = labels_of(source, count);
  if (labels.size() != static_cast<std::size_t>(count))
    throw InputError(
        fmt::format("{}: expected {} labels, one per datum, found {}", source.name(), count, labels.size()));
  if (std::set<std::string>(labels.begin(), labels.end()).size() > 100)
    throw InputError(fmt::format("{}: expected at most 100 different labels", source.name()));
  return labels;
}

Labels own_labels(const DataSetInfo& info, const FoundData& found) {
  Labels labels;
  labels.test = beside(found.files[1], info.test);
  std::vector<std::string> all = beside(found.files[0], info.train + info.validation);
  if (all.empty()) return labels;
  labels.train.assign(all.begin(), all.begin() + info.train);
  labels.validation.assign(all.begin() + info.train, all.end());
  return labels;
}

}  // namespace hone
