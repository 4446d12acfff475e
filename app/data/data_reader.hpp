#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "app/data/load.hpp"

namespace hone {

// Numbers of data, one datum after the other, last index fastest.
using Numbers = std::variant<BitRows, std::vector<std::uint8_t>, std::vector<float>, std::vector<double>>;

// Reads the data of a file front to back, some at a time, and holds only these in memory. Exceptions are formats whose
// data do not follow each other in the file: archives, Matrix Market, and .npy files in Fortran order.
class DataReader {
 public:
  virtual ~DataReader() = default;
  virtual std::vector<int> sizes() const = 0;               // of a datum
  virtual double scale() const { return 1; }                // what a byte is multiplied by
  virtual Numbers next(int most) = 0;                       // the next data, at most `most`; none at the end
  virtual std::vector<std::string> labels() { return {}; }  // of the data that came last

  int dimension() const;  // values per datum
};

// Opens what read_data_file reads.
std::unique_ptr<DataReader> open_data_file(const std::string& name, const FileRequest& request);

// The shape that is asked for, or that of the file's data: one row unless they are images.
ImageShape shape_of(const DataReader& reader, const std::vector<int>& wanted, ColourPlanes planes);

// The form in which data are kept, one for all of a file: bits if all values are 0 or 1, bytes if all are whole and
// from 0 to 255. Each form holds the values of those before it, so a file has the last form that one of its pieces
// needs.
enum class StoredAs { bits, bytes, floats, doubles };
StoredAs form_of(const Numbers& numbers, double scale);

int count_of(const Numbers& numbers, int dimension);  // data

// The data in a form that their numbers can be kept in.
DataSet data_of(Numbers numbers, ImageShape shape, double scale, StoredAs form);

}  // namespace hone
