#include "hone/base/format.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hone::detail {
namespace {

TEST(Format, WritesIntegers) {
  EXPECT_EQ(format("{} and {}", -7, 42u), "-7 and 42");
  EXPECT_EQ(format("{}", std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(format("{}", std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

// A double without a precision is as short as it can be and still reads back as the same number.
TEST(Format, WritesDoubles) {
  EXPECT_EQ(format("{}", 0.1), "0.1");
  EXPECT_EQ(format("{}", -3.0), "-3");
  EXPECT_EQ(format("{}", 1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(format("{} {}", std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()),
            "inf -inf");
}

TEST(Format, RoundsToAPrecision) {
  EXPECT_EQ(format("{:.3g}", 1234.5), "1.23e+03");
  EXPECT_EQ(format("{:.3g}", 0.012345f), "0.0123");
  EXPECT_EQ(format("{:.2f}", 2.71828), "2.72");
  EXPECT_EQ(format("{:.9f}", std::numeric_limits<double>::max()).size(), 309u + 10u);
}

TEST(Format, WritesTextsOfAnyKind) {
  EXPECT_EQ(format("{}, {} and {}", std::string("a"), std::string_view("b"), "c"), "a, b and c");
  EXPECT_EQ(format("'{}'", ""), "''");
}

TEST(Format, KeepsWhatIsBetweenPlaces) {
  EXPECT_EQ(format("nothing to fill in"), "nothing to fill in");
  EXPECT_EQ(format("R̂ = {}%", 5), "R̂ = 5%");
}

TEST(Format, RefusesAWrongNumberOfArguments) {
  EXPECT_THROW(format("{} {}", 1), std::logic_error);
  EXPECT_THROW(format("{}", 1, 2), std::logic_error);
  EXPECT_THROW(format("{", 1), std::logic_error);
}

}  // namespace
}  // namespace hone::detail
