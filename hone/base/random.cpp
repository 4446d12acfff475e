#include "hone/base/random.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/elementary.hpp"

namespace hone {
namespace {

using Words = std::array<std::uint32_t, 4>;

HONE_INLINE Words rounds(Words counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD251'1F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E'8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E37'79B9u;
    key1 += 0xBB67'AE85u;
  }
  return counter;
}

// An unsigned number as a double, exactly, in a form that vectorizes.
HONE_INLINE double exact_double(std::uint32_t x) {
  return std::bit_cast<double>(std::uint64_t{x} | 0x4330'0000'0000'0000u) - 0x1p52;
}

// 53 random bits as a double inside (0, 1): the half keeps both ends out.
HONE_INLINE double uniform(std::uint32_t high, std::uint32_t low) {
  return (exact_double(high) * 0x1p21 + exact_double(low >> 11) + 0.5) * 0x1p-53;
}

struct Pair {
  double first, second;
};

struct Uniform {
  HONE_INLINE Pair operator()(double u, double v) const { return {u, v}; }
};

struct BoxMuller {
  HONE_INLINE Pair operator()(double u, double v) const {
    const double radius = std::sqrt(-2 * log_unit(u));
    const CosSin turn = cos_sin_turn(v);
    return {radius * turn.cos, radius * turn.sin};
  }
};

// Two numbers a block, and some blocks at once, so that the loops vectorize. Few are made one by one: the same bits.
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

Words first_counter(const Stream& stream) {
  const auto purpose = static_cast<std::uint32_t>(stream.purpose);
  return {0, stream.datum, stream.iteration, (purpose << 24) | (stream.step & 0xFF'FFFFu)};
}

}  // namespace

Words philox(Words counter, std::uint64_t key) { return rounds(counter, key); }

void PhiloxSource::normals(const Stream& stream, std::span<double> out) const {
  fill_normals(first_counter(stream), seed_, out);
}

void PhiloxSource::uniforms(const Stream& stream, std::span<double> out) const {
  fill_uniforms(first_counter(stream), seed_, out);
}

}  // namespace hone
