#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/latent/data_set.hpp"

namespace hone {

enum class FileFormat { idx, amat };

// One file of a data set. It may lie on disk plain or with .gz at the end of its name.
struct DataFile {
  std::string name;       // without .gz
  std::string published;  // its name at the servers
  FileFormat format = FileFormat::idx;
  int items = 0;
  std::string sha256;  // of the content without its compression, which differs between sources; empty: not known
};

struct DataSetInfo {
  std::string name;  // also of its folder
  std::string description;
  ImageShape shape;
  int train = 0, validation = 0, test = 0;  // data in each split
  std::vector<DataFile> files;              // idx: training and test; amat: one a split; none: made by code
  std::vector<std::string> servers;         // folders at servers, tried in this order
  std::string package;                      // Debian's, or empty
};

// The data sets that have a name: mnist, binarized-mnist, fashion-mnist, synthetic.
std::span<const DataSetInfo> known_data_sets();

// Throws InputError that lists the names where there is none such.
const DataSetInfo& data_set_named(std::string_view name);

// The bytes of a file's content: exact for idx, the most that there can be for amat.
std::uint64_t content_bytes(const DataSetInfo& info, const DataFile& file);

}  // namespace hone
