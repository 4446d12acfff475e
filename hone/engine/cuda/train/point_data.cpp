#include "hone/engine/cuda/train/point_data.hpp"

#include <algorithm>

namespace hone::cuda {

PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld) {
  PointData points{std::vector<float>(static_cast<std::size_t>(count) * static_cast<std::size_t>(ld)),
                   std::vector<double>(static_cast<std::size_t>(count))};
  Minibatch<float> one = model.minibatch(1);
  for (int i = 0; i < count; ++i) {
    const int n = begin + i;
    model.expand(data, std::span<const int>(&n, 1), 0, 1, one);
    std::copy_n(one.view().column(0), data.dimension(), points.x.begin() + static_cast<std::ptrdiff_t>(i) * ld);
    points.constant[static_cast<std::size_t>(i)] = one.constant(0);
  }
  return points;
}

}  // namespace hone::cuda
