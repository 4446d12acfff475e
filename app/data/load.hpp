#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "app/data/binarize.hpp"
#include "app/data/lookup.hpp"

namespace hone {

struct DataRequest {
  std::string name;  // of a known data set, or the path of a file: .npy, .amat, IDX, each also as .gz
  Binarization binarization = Binarization::automatic;
  std::uint64_t seed = 1;               // of stochastic binarization and of synthetic data
  std::filesystem::path data_dir = {};  // looked at first, unless empty
};

struct DataSplits {
  std::string name;
  std::string origin;        // in words: which files, binarized how
  std::string binarization;  // in words: the second half of it
  DataSet train, validation, test;
};

// Loads a data set. `automatic` binarization means
//   mnist            the fixed .amat files where found (in the folder mnist or binarized-mnist), else stochastic
//   fashion-mnist    threshold
//   others           none
// The data of binarized-mnist, synthetic and .amat files are bits already: a KeyError where they are to be binarized.
// Without binarization, grey levels are bytes that stand for byte/255; the bytes of a .npy file stand for themselves.
// A file is training data as a whole. Throws InputError where something is not found or not as it should be.
DataSplits load_data(const DataRequest& request);

// The parts of load_data, for data sets of one's own.
DataSplits load_data(const DataSetInfo& info, const DataRequest& request, std::span<const Place> places);
DataSet read_data_file(const std::filesystem::path& file);

}  // namespace hone
