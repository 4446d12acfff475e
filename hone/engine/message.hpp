#pragma once

#include "hone/base/bytes.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// Bytes that may hold data and states of engines.
class Message : public Bytes {
 public:
  using Bytes::Bytes;
  using Bytes::put;
  void put(const DataSet& data);
  void put(const TrainState& state);
  DataSet take_data();
  TrainState take_state();
};

}  // namespace hone
