#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/data/data_stream.hpp"
#include "app/run/use.hpp"

namespace hone {

// Takes a trained model through data: what `hone encode`, `reconstruct`, `sample` and `score` share.
class UsingModel {
 public:
  explicit UsingModel(const UseOptions& options);

  TrainedNetworks& networks() { return *networks_; }
  int latent() const { return networks_->latent(); }

  // Finds the data and checks them; `watch` gets every piece of the data to use, perhaps more than once, beginning
  // with datum 0 each time. Throws InputError.
  void load_data(const DataStream::Work& watch = {});
  const DataStream& data() const { return *data_; }
  int count() const { return count_; }  // of data to use
  // One of the data.
  DataSet datum(int index) const;

  // Calls work for one piece of the data after the other, telling how far it is.
  void each(const std::string& label, const DataStream::Work& work) const { each(label, *data_, count_, work); }
  void each(const std::string& label, const DataStream& data, int count, const DataStream::Work& work) const;
  // The same for `count` items of this many numbers each that are not data.
  void in_ranges(const std::string& label, int count, int numbers, const std::function<void(Range)>& work) const;

  void check_stop() const;
  void say(const std::string& text) const;   // also if quiet
  void note(const std::string& text) const;  // unless quiet

  // Of data that begin at `first` among all: refined draws (D, data) and means of q; draw −1 is the only one.
  Matrix<double> refined(const DataSet& data, int first, int steps, int draw) const;
  Matrix<double> means(const DataSet& data, Matrix<double>* sds = nullptr) const;

 private:
  DataRequest request() const;
  void check(const DataSet& data, int first, const DataStream::Work& watch);

  const UseOptions& options_;
  std::unique_ptr<TrainedNetworks> networks_;
  std::optional<DataStream> data_;
  int count_ = 0;
  bool long_told_ = false;
};

}  // namespace hone
