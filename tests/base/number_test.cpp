#include "base/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace sb {
namespace {

TEST(Shortest, MatchesPythonRepr) {
  const std::pair<double, const char*> cases[] = {{0.0, "0.0"},
                                                  {-0.0, "-0.0"},
                                                  {1.0, "1.0"},
                                                  {0.1, "0.1"},
                                                  {1.0 / 3, "0.3333333333333333"},
                                                  {1e-4, "0.0001"},
                                                  {1e-5, "1e-05"},
                                                  {1.5e-7, "1.5e-07"},
                                                  {1e15, "1000000000000000.0"},
                                                  {1e16, "1e+16"},
                                                  {123456789.125, "123456789.125"},
                                                  {1e22, "1e+22"},
                                                  {5e-324, "5e-324"},
                                                  {1.7976931348623157e308, "1.7976931348623157e+308"},
                                                  {-2.5, "-2.5"},
                                                  {100.0, "100.0"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(shortest(value), text);
  EXPECT_EQ(shortest(std::nan("")), "nan");
  EXPECT_EQ(shortest(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(shortest(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Shortest, ReadsBackAsTheSameDouble) {
  uint64_t bits = 0x9E3779B97F4A7C15;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 6364136223846793005 + 1442695040888963407;
    const double value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::strtod(shortest(value).c_str(), nullptr), value);
  }
}

TEST(Text, GroupsDigitsAndNamesUnits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(80e6), "80.0 MB");
  EXPECT_EQ(duration_text(0.0025), "2.50 ms");
  EXPECT_EQ(duration_text(0.25), "250 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(7500), "2 h 05 min");
  EXPECT_EQ(duration_text(std::nan("")), "?");
  EXPECT_EQ(fixed(std::nan(""), 2), "nan");
}

TEST(Parse, ParsesWholeTextOrNothing) {
  EXPECT_EQ(parse_unsigned("18446744073709551615"), 18446744073709551615ULL);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "99999999999999999999", "one"}) {
    EXPECT_FALSE(parse_unsigned(bad)) << bad;
  }
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_finite("1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "1e999", "1,5", "0.5x"}) EXPECT_FALSE(parse_finite(bad)) << bad;
}

}  // namespace
}  // namespace sb
