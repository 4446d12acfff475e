#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/run/networks.hpp"
#include "app/run/train.hpp"
#include "python/src/arrays.hpp"
#include "python/src/watch.hpp"

namespace hone::python {

// Data of a model that stay in Python's memory, except for bits, which are packed.
struct Data {
  DataSet set;
  nb::object owner;  // what holds the numbers; None where they were packed
};

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (n, values)

// `shape` is (rows, columns, channels) of a datum; data that are no images have one row.
Data bytes_of(Rows<std::uint8_t> values, const std::array<int, 3>& shape);
Data floats_of(Rows<float> values, const std::array<int, 3>& shape);
Data doubles_of(Rows<double> values, const std::array<int, 3>& shape);

// Compressed rows.
struct Csr {
  nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> begin;
  nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> column;
  nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> value;
  std::array<int, 3> shape;
};
Data sparse_of(const Csr& rows);

// How a model is trained: the settings of `hone train`.
struct Training {
  SettingTexts settings;
  std::string folder;
  bool resume = false;
};

struct Parts {
  const Data& train;
  const Data *test, *validation;  // null: none
};

// Trains in a run folder and returns summary.json. Ends early, with a checkpoint, where `stop` is set.
std::string train_model(const Training& training, const Parts& parts, Stop& stop, nb::object tell, nb::object say);

std::string resolved_config(const SettingTexts& settings);  // config.toml
nb::list setting_table();                                   // the keys of `hone train`

// A checkpoint with another value of a key that names where data are; for a run folder that moves.
nb::bytes with_identity(nb::bytes checkpoint, const std::string& key, const std::string& value);

// A trained model and its q (app/run/networks.hpp), from the texts of config.toml and the bytes of a checkpoint.
// Belongs to the process that made it: its team of threads is not there after a fork, so the other process leaves it in
// memory.
class Networks {
 public:
  Networks(const std::string& config, nb::bytes checkpoint, int threads);
  Networks(const Networks&) = delete;
  Networks& operator=(const Networks&) = delete;
  ~Networks();

  nb::tuple encode(const Data& data) const;  // means and sds of q, (n, D) each
  nb::tuple refine(const Data& data, int steps, std::uint64_t seed, Stop& stop, nb::object tell) const;
  nb::object decode(const Points& z) const;   // E[x | z]
  nb::object outputs(const Points& z) const;  // natural parameters
  nb::object simulate(int count, std::uint64_t seed) const;
  nb::dict evaluate(const Data& data, int samples, Stop& stop, nb::object tell);
  nb::dict anneal(const Data& data, int steps, int chains, Stop& stop, nb::object tell);
  nb::dict parameters() const;
  nb::dict torch_arrays() const;
  std::uint32_t iteration() const { return networks_.state().iteration; }
  int pixels() const { return networks_.pixels(); }
  std::vector<int> shape() const;  // of a datum; data that are no images have one size
  std::optional<double> threshold() const { return networks_.data().threshold; }

 private:
  void expect(const Data& data) const;

  const pid_t process_ = getpid();
  std::unique_ptr<TrainedNetworks> own_;
  TrainedNetworks& networks_;
};

// The checkpoint of a run folder. One of version 0.1.0 is completed from the run's data.
nb::bytes complete_checkpoint(const std::string& folder);

}  // namespace hone::python
