#include "hone/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hone {
namespace {

using Words = std::array<std::uint32_t, 4>;

Words words_of(const Stream& stream, std::uint32_t block, std::uint64_t seed) {
  const auto purpose = static_cast<std::uint32_t>(stream.purpose);
  return philox({block, stream.datum, stream.iteration, (purpose << 24) | (stream.step & 0xFF'FFFFu)}, seed);
}

// 52 random bits as a double inside (0, 1): the half, exact with 52 bits, keeps both ends out.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 20) | (low >> 12);
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// Fills `out` two numbers a block of four words.
template <class Transform>
void fill(const Stream& stream, std::uint64_t seed, std::span<double> out, Transform transform) {
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const Words w = words_of(stream, static_cast<std::uint32_t>(i / 2), seed);
    const auto [first, second] = transform(uniform(w[0], w[1]), uniform(w[2], w[3]));
    out[i] = first;
    if (i + 1 < out.size()) out[i + 1] = second;
  }
}

struct Pair {
  double first, second;
};

}  // namespace

Words philox(Words counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD251'1F53ull * counter[0];
    const std::uint64_t b = 0xCD9E'8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E37'79B9u;
    key1 += 0xBB67'AE85u;
  }
  return counter;
}

void PhiloxSource::normals(const Stream& stream, std::span<double> out) const {
  fill(stream, seed_, out, [](double u, double v) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(u));
    const double angle = 2 * std::numbers::pi * v;
    return Pair{radius * std::cos(angle), radius * std::sin(angle)};
  });
}

void PhiloxSource::uniforms(const Stream& stream, std::span<double> out) const {
  fill(stream, seed_, out, [](double u, double v) { return Pair{u, v}; });
}

}  // namespace hone
