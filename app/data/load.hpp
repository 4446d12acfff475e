#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/data/binarize.hpp"
#include "app/data/csv.hpp"
#include "app/data/lookup.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

// Data with one plane per colour, (3, rows, columns), whose shape is not given: mostly images in the wrong order. New
// trainings refuse them; elsewhere they are plain values.
enum class ColourPlanes { taken, refused };

struct DataRequest {
  std::string name;  // a known data set, or the path of a file or a folder (data_file.cpp)
  Binarization binarization = Binarization::automatic;
  std::uint64_t seed = 1;               // of stochastic binarization and of synthetic data
  std::filesystem::path data_dir = {};  // the first place to look, unless empty
  std::vector<int> shape = {};          // rows, columns (and 3, for colour) of a file's datum; empty: as in the file
  double split = 0;                     // share of the data that is held out as test data, chosen by the seed
  std::string test = {};                // the path of a file with the test data; empty: the set's own
  double validation_split = 0;          // share of the data that is held out as validation data
  std::string validation = {};          // the path of a file with the validation data; empty: the set's own
  Missing missing = Missing::refused;   // whether files may have missing values
  std::string labels = {};  // a column of a .csv file, or the path of a file of labels; empty: the set's own
  CsvHeader header = CsvHeader::automatic;  // whether .csv files begin with a line of names
  ColourPlanes planes = ColourPlanes::taken;
};

// A label per datum of each part; empty if there are none.
struct Labels {
  std::vector<std::string> train, validation, test;
};

// For each datum of a part, its number in the file that it was taken from; empty: 0, 1, 2, …
struct FileRows {
  std::vector<int> train, validation, test;
};

struct DataSplits {
  std::string name;
  std::string origin;        // in words: which files, binarized how
  std::string binarization;  // in words: how binarized
  DataSet train, validation, test;
  std::optional<double> threshold = {};  // where values were cut into bits; 127.5 for bytes
  Labels labels = {};
  FileRows rows = {};
};

// Whether a name of data is a path and not one of the known data sets: it has a slash or an extension, or there is a
// folder of that name.
bool is_data_path(const std::string& name);

// The part called train, validation or test. Throws InputError for another name, and, with advice, if there are no such
// data.
const DataSet& split_of(const DataSplits& data, const std::string& name, const std::string& advice = "");

// What `automatic` means for data of this name (a known data set or a file).
Binarization usual_binarization(const std::string& name);

// Loads a data set. `automatic` binarization means
//   mnist            the fixed .amat files if found (in the folder mnist or binarized-mnist), else stochastic
//   fashion-mnist    threshold
//   others           none
// The data of binarized-mnist, synthetic and .amat files are already bits: binarizing them is a KeyError.
// Without binarization, grey levels are bytes that stand for byte/255; the bytes of a .npy file stand for themselves.
// A file becomes training data as a whole. Throws InputError if something is not found or wrong.
DataSplits load_data(const DataRequest& request);

// The parts of load_data, for your own data sets.
DataSplits load_data(const DataSetInfo& info, const DataRequest& request, std::span<const Place> places);

// Data from a file, whose name says the format: .npy, .npz (FILE.npz:KEY for one of several arrays), .csv, .tsv, .mtx,
// .amat, .zip with PNG or JPEG images, a folder of them, otherwise IDX; all but folders plain or .gz. Whole numbers
// from 0 to 255 are bytes that stand for themselves; those of images for byte/255. `shape`, if given, is rows and
// columns of a datum, and 3 for colour.
struct FileRequest {
  std::vector<int> shape = {};
  Missing missing = Missing::refused;
  std::string label = {};  // the name of a column of a .csv file that holds labels, if it is there
  CsvHeader header = CsvHeader::automatic;
  ColourPlanes planes = ColourPlanes::taken;
};
DataSet read_data_file(const std::string& name, const FileRequest& request = {},
                       std::vector<std::string>* labels = nullptr);

// How to read the file that `request` names. `labels` names a column of the file, unless it is a path or the file has
// no such column.
FileRequest file_request(const DataRequest& request);

// Data in memory, treated as those of a file with the request's name: binarized, then kept as bits where they are bits.
// All become training data.
DataSplits splits_of(const DataRequest& request, DataSet train);
// The same with data of other parts (empty: none), divided as the request says. Labels are read if they are a file.
DataSplits splits_of(const DataRequest& request, DataSet train, DataSet test, DataSet validation);

}  // namespace hone
