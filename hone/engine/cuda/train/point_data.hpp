#pragma once

#include <vector>

#include "hone/latent/model.hpp"

namespace hone::cuda {

// Some data in the device's layout.
struct PointData {
  std::vector<float> x;          // (points, ld)
  std::vector<double> constant;  // of log p(x | z), one per point
};

// data[begin, begin + count), with rows of `ld` floats.
PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld);

}  // namespace hone::cuda
