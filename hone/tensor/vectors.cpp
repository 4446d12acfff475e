#include "hone/tensor/vectors.hpp"

#include <cstring>

#include "hone/base/clones.hpp"

namespace hone::vectors_detail {

using Eight = double __attribute__((vector_size(8 * sizeof(double))));

HONE_CLONES double dot(const double* x, const double* y, std::size_t count) {
  Eight sum[2] = {};
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int k = 0; k < 2; ++k) {
      Eight a, b;
      std::memcpy(&a, x + i + 8 * k, sizeof a);
      std::memcpy(&b, y + i + 8 * k, sizeof b);
      sum[k] += a * b;
    }
  sum[0] += sum[1];
  double total = 0;
  for (; i < count; ++i) total += x[i] * y[i];
  for (int k = 0; k < 8; ++k) total += sum[0][k];
  return total;
}

HONE_CLONES void add_scaled(double factor, const double* from, double* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

}  // namespace hone::vectors_detail
