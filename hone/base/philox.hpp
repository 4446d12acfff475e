#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "hone/base/elementary.hpp"
#include "hone/base/random.hpp"

// Turns a Philox block into two random numbers, on both engines.
#if defined(__CUDACC__)
#define HONE_UNROLL_ROUNDS _Pragma("unroll")
#else
#define HONE_UNROLL_ROUNDS _Pragma("GCC unroll 10")
#endif

namespace hone::philox_detail {

using Words = std::array<std::uint32_t, 4>;

HONE_INLINE Words rounds(Words counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  HONE_UNROLL_ROUNDS
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

// Converts exactly, in a form that vectorizes.
HONE_INLINE double exact_double(std::uint32_t x) {
  return std::bit_cast<double>(std::uint64_t{x} | 0x4330'0000'0000'0000u) - 0x1p52;
}

// 52 random bits as a double inside (0, 1): adding a half, which is exact with 52 bits, excludes both ends.
HONE_INLINE double uniform(std::uint32_t high, std::uint32_t low) {
  return (exact_double(high) * 0x1p20 + exact_double(low >> 12) + 0.5) * 0x1p-52;
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

// The counter of a stream's first block; block i of a sequence has i in its first word.
HONE_INLINE Words first_counter(const Stream& stream) {
  const auto purpose = static_cast<std::uint32_t>(stream.purpose);
  return {0, stream.datum, stream.iteration, (purpose << 24) | (stream.step & 0xFF'FFFFu)};
}

}  // namespace hone::philox_detail
