#include "app/data/fingerprint.hpp"

#include <vector>

#include "hone/base/sha256.hpp"

namespace hone {
namespace {

template <class T>
void update(Sha256& sum, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  sum.update({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

std::string fingerprint(const DataSet& data) {
  Sha256 sum;
  std::vector<int> shape = {data.size(), data.shape().rows, data.shape().cols};
  if (data.shape().channels > 1) shape.push_back(data.shape().channels);
  update(sum, std::span<const int>(shape));
  Matrix<double> column(data.dimension(), 1);
  for (int n = 0; n < data.size(); ++n) {
    if (data.bits()) {
      update(sum, data.bits()->row(n));
      continue;
    }
    data.expand(std::span<const int>(&n, 1), column.view());
    update(sum, std::span<const double>(column.column(0)));
  }
  return sum.hex();
}

}  // namespace hone
