#include "hone/base/random.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/philox.hpp"

namespace hone {
namespace {

using namespace philox_detail;

// Two numbers per block, several blocks at once, so that the loops vectorize. A few numbers are made one block at a
// time, with the same bits.
template <int blocks, class Transform>
HONE_INLINE void fill_blocks(Words counter, std::uint64_t key, std::span<double> out, Transform transform) {
  std::uint32_t word[4][blocks];
  double number[2 * blocks];
  for (int i = 0; i < blocks; ++i) {
    const Words w = rounds({counter[0] + static_cast<std::uint32_t>(i), counter[1], counter[2], counter[3]}, key);
    word[0][i] = w[0];
    word[1][i] = w[1];
    word[2][i] = w[2];
    word[3][i] = w[3];
  }
  for (int i = 0; i < blocks; ++i) {
    const Pair pair = transform(uniform(word[0][i], word[1][i]), uniform(word[2][i], word[3][i]));
    number[2 * i] = pair.first;
    number[2 * i + 1] = pair.second;
  }
  if (out.size() >= std::size(number))
    std::copy_n(number, std::size(number), out.begin());
  else
    std::copy_n(number, out.size(), out.begin());
}

template <class Transform>
HONE_INLINE void fill(Words counter, std::uint64_t key, std::span<double> out, Transform transform) {
  constexpr int many = 8, few = 3;
  while (!out.empty()) {
    const std::size_t count = out.size() > 2 * few ? many : 1;
    if (count == many)
      fill_blocks<many>(counter, key, out, transform);
    else
      fill_blocks<1>(counter, key, out, transform);
    counter[0] += static_cast<std::uint32_t>(count);
    out = out.subspan(std::min(out.size(), 2 * count));
  }
}

HONE_CLONES void fill_normals(Words counter, std::uint64_t key, std::span<double> out) {
  fill(counter, key, out, BoxMuller());
}

HONE_CLONES void fill_uniforms(Words counter, std::uint64_t key, std::span<double> out) {
  fill(counter, key, out, Uniform());
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  return rounds(counter, key);
}

void PhiloxSource::normals(const Stream& stream, std::span<double> out) const {
  fill_normals(first_counter(stream), seed_, out);
}

void PhiloxSource::uniforms(const Stream& stream, std::span<double> out) const {
  fill_uniforms(first_counter(stream), seed_, out);
}

}  // namespace hone
