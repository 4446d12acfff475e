#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/latent/data_set.hpp"

namespace hone {

enum class FileFormat { idx, amat };

// One file of a data set. On disk it is plain, or gzipped with .gz at the end of its name.
struct DataFile {
  std::string name;       // without .gz
  std::string published;  // its name on the servers
  FileFormat format = FileFormat::idx;
  int items = 0;
  std::string sha256;  // of the inflated content (compression differs between sources); empty: not known
};

struct DataSetInfo {
  std::string name;  // also of its folder
  std::string description;
  ImageShape shape;
  int train = 0, validation = 0, test = 0;  // data in each split
  std::vector<DataFile> files;              // idx: training and test; amat: one per split; none: generated
  std::vector<std::string> servers;         // folders on servers, tried in this order
  std::string package;                      // Debian's, or empty
};

// The data sets that have a name: mnist, binarized-mnist, fashion-mnist, synthetic.
std::span<const DataSetInfo> known_data_sets();

// Throws InputError that lists the names if there is no such set.
bool is_known_data_set(std::string_view name);
const DataSetInfo& data_set_named(std::string_view name);

// The number of bytes in a file's content: exact for idx, an upper bound for amat.
std::uint64_t content_bytes(const DataSetInfo& info, const DataFile& file);

}  // namespace hone
