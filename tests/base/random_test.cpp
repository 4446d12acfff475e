#include "hone/base/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace hone {
namespace {

// Known-answer vectors published with Random123.
TEST(Philox, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0ull), (Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822ull),
            (Words{0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}));
}

TEST(PhiloxSource, MomentsAreThoseOfTheStandardNormal) {
  const PhiloxSource source(7);
  constexpr int count = 1'000'000;
  std::vector<double> x(count);
  source.normals({Purpose::draw, 1, 2, 3}, x);
  double first = 0, second = 0, fourth = 0, tail = 0;
  for (const double value : x) {
    first += value;
    second += value * value;
    fourth += std::pow(value, 4);
    tail += std::abs(value) > 3;
  }
  const double n = count;
  EXPECT_NEAR(first / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(second / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 4 * std::sqrt(96 / n));
  const double p = 0.002699796;  // P(|x| > 3)
  EXPECT_NEAR(tail / n, p, 4 * std::sqrt(p / n));
}

TEST(PhiloxSource, UniformsStayInsideTheOpenInterval) {
  const PhiloxSource source(7);
  std::vector<double> u(1'000'001);
  source.uniforms({Purpose::accept, 1}, u);
  double sum = 0;
  for (const double value : u) {
    ASSERT_GT(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 1e6, 0.5, 4 / std::sqrt(12e6));
}

TEST(PhiloxSource, EveryPartOfTheStreamMatters) {
  const std::vector<Stream> streams = {{Purpose::draw, 1, 1, 1}, {Purpose::momentum, 1, 1, 1},
                                       {Purpose::draw, 2, 1, 1}, {Purpose::draw, 1, 2, 1},
                                       {Purpose::draw, 1, 1, 2}, {Purpose::draw, assessment_iteration, 1, 1}};
  std::set<double> seen;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 40})
    for (const Stream& stream : streams) {
      std::vector<double> x(3);
      PhiloxSource(seed).normals(stream, x);
      seen.insert(x.begin(), x.end());
    }
  EXPECT_EQ(seen.size(), 3 * 3 * streams.size());
}

TEST(PhiloxSource, ASequenceDoesNotDependOnHowMuchOfItIsAsked) {
  const PhiloxSource source(3);
  std::vector<double> shorter(5), longer(11);
  source.normals({Purpose::start}, shorter);
  source.normals({Purpose::start}, longer);
  for (std::size_t i = 0; i < shorter.size(); ++i) EXPECT_EQ(shorter[i], longer[i]);
  std::vector<double> most(203);  // the same numbers, drawn many at once or one by one
  source.normals({Purpose::start}, most);
  for (std::size_t size = 1; size < most.size(); ++size) {
    std::vector<double> some(size);
    source.normals({Purpose::start}, some);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), most.begin())) << size;
  }
}

// Box and Muller's transformation of the words, by the C library's functions.
TEST(PhiloxSource, NormalsAreBoxAndMullers) {
  constexpr std::uint32_t datum = 11, iteration = 5, step = 2;
  std::vector<double> x(1001);
  PhiloxSource(7).normals({Purpose::momentum, iteration, datum, step}, x);
  const auto uniform = [](std::uint64_t high, std::uint64_t low) {
    return (static_cast<double>((high << 20) | (low >> 12)) + 0.5) * 0x1p-52;
  };
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    const auto word = philox({i / 2, datum, iteration, (2u << 24) | step}, 7);
    const double radius = std::sqrt(-2 * std::log(uniform(word[0], word[1])));
    const double angle = 2 * 3.14159265358979323846 * uniform(word[2], word[3]);
    EXPECT_NEAR(x[i], radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-14);
  }
}

// Every instruction level gives the same bits, and they never change.
TEST(PhiloxSource, BitsOfTheNormals) {
  std::vector<double> x(100'000);
  PhiloxSource(7).normals({Purpose::draw}, x);
  std::uint64_t hash = 0;
  for (const double value : x) hash = hash * 1'099'511'628'211u + std::bit_cast<std::uint64_t>(value);
  EXPECT_EQ(hash, 13'324'980'378'276'971'790u);
}

}  // namespace
}  // namespace hone
