#pragma once

#include <functional>
#include <optional>

#include "app/data/data_reader.hpp"

namespace hone {

// Data to use a trained model on. Those of a file need not fit into memory: one piece is held at a time, and every
// datum is the same as if the file were read as a whole. Binarization uses other random numbers than for
// training data.
class DataStream {
 public:
  // Told of data [first, first + data.size()).
  using Work = std::function<void(const DataSet& data, int first)>;

  // How many data of this many values a piece has: whole blocks of `block` data.
  static int at_once(int block, int dimension);

  // Data in memory.
  DataStream(DataSet data, int block);

  // Data of a file, binarized as the request says. Reads the whole file once and gives `check` every piece: unless that
  // throws InputError, the file, its numbers and their binarization are sound. If later data change the form of earlier
  // ones, it begins again with datum 0.
  DataStream(DataRequest request, int block, const Work& check);

  int size() const { return size_; }
  ImageShape shape() const { return shape_; }
  bool in_memory() const { return all_.has_value(); }
  bool file_of_bits() const { return form_ == StoredAs::bits; }  // the values of the file are zeros and ones

  // Calls work for the pieces with data of [begin, end), one after the other. The last piece ends at `end`.
  void each(int begin, int end, const Work& work) const;

 private:
  bool scan(const Work& check);
  DataSet piece(Numbers numbers, int first) const;

  DataRequest request_;
  int block_;
  int size_ = 0;
  ImageShape shape_;
  double scale_ = 1;
  std::optional<StoredAs> form_;
  std::optional<DataSet> all_;  // if they fit into one piece
};

}  // namespace hone
