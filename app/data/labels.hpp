#pragma once

#include <string>
#include <vector>

#include "app/data/byte_source.hpp"
#include "app/data/load.hpp"

namespace hone {

// One label per datum from a file: .npy with one dimension of integers, IDX with one dimension (a name that ends in
// -ubyte), else text with one label per line; if there is one line more than data, the first is a header. All plain or
// .gz. Throws InputError unless there are `count` labels, and not more than a hundred different ones.
std::vector<std::string> read_labels(const std::string& file, int count);
std::vector<std::string> read_labels(ByteSource& source, int count);  // the source's name says the format

// Those of a known set of images, if their files are beside the images.
Labels own_labels(const DataSetInfo& info, const FoundData& found);

}  // namespace hone
