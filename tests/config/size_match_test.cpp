#include "config/size_match.h"

#include <gtest/gtest.h>

namespace sb::test {
namespace {

TEST(SizeFault, IsReportedBeyondTenPercent) {
  const SizeMatch asked{MatchedSize::params, 1000, 1};
  const auto fault = [&](double size) { return size_fault(asked, SizeFound{64, {}, size}); };
  for (const double size : {900.0, 1000.0, 1100.0}) EXPECT_EQ(fault(size), "") << size;
  EXPECT_EQ(fault(1101), "the nearest is width 64 with 1,101, expected 1,000 parameters within 10 %");
  EXPECT_EQ(fault(899), "the nearest is width 64 with 899, expected 1,000 parameters within 10 %");
  EXPECT_EQ(
      size_fault({MatchedSize::state, 5000, 1}, std::nullopt),
      "no width has any state elements per layer with these switches, expected 5,000 state elements per layer within "
      "10 %");
}

}  // namespace
}  // namespace sb::test
