#include "findings/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "findings/svg_axis.h"
#include "report/palette.h"
#include "svg_reader.h"

namespace sb::test {
namespace {

TEST(Svg, WritesNumbersWithAtMostTwoDecimals) {
  EXPECT_EQ(svg_number(12.345), "12.35");
  EXPECT_EQ(svg_number(12.5), "12.5");
  EXPECT_EQ(svg_number(100), "100");
  EXPECT_EQ(svg_number(-.001), "0");
  EXPECT_THROW(svg_number(std::nan("")), Error);
  EXPECT_THROW(svg_number(std::numeric_limits<double>::infinity()), Error);
}

TEST(Svg, EscapesText) {
  Svg svg;
  svg.text(10, 10, "a < b & \"c\" > \x01 </text><script>", "ink");
  const SvgReader read(svg.document(100, 50, "<title>", "& so on"));
  ASSERT_EQ(read.of("text").size(), 1U);
  EXPECT_EQ(read.of("text")[0].text, "a < b & \"c\" > \\x01 </text><script>");
  EXPECT_EQ(read.of("title")[0].text, "<title>");
  EXPECT_EQ(read.of("desc")[0].text, "& so on");
}

TEST(Svg, HasTitleAndDescriptionForScreenReaders) {
  const SvgReader read(Svg().document(640, 50.5, "name", "what it shows"));
  const auto& root = read.root();
  EXPECT_EQ(root.attributes.at("role"), "img");
  EXPECT_EQ(root.attributes.at("aria-labelledby"), "title desc");
  EXPECT_EQ(read.of("title")[0].attributes.at("id"), "title");
  EXPECT_EQ(read.of("desc")[0].attributes.at("id"), "desc");
  EXPECT_EQ(root.attributes.at("viewBox"), "0 0 640 50.5");
}

TEST(Svg, DefinesEveryColourForLightAndDark) {
  Svg svg;
  const std::string first = svg.series_class(3), second = svg.series_class(0);
  EXPECT_EQ(svg.series_class(3), first);
  svg.marker(0, 5, 5, first);
  svg.marker(1, 5, 5, second);
  const std::string style = SvgReader(svg.document(10, 10, "", "")).of("style")[0].text;
  const size_t dark = style.find("@media (prefers-color-scheme:dark)");
  ASSERT_NE(dark, std::string::npos);
  for (const int colour : {0, 3}) {
    const auto rule = [&](const std::vector<std::string>& palette) {
      return formatted(".c{0}{{fill:{1};stroke:{1}}}", colour, palette[static_cast<size_t>(colour)]);
    };
    EXPECT_LT(style.find(rule(palette_light())), dark);
    EXPECT_GT(style.find(rule(palette_dark())), dark);
    EXPECT_NE(style.find(rule(palette_dark())), std::string::npos);
  }
  EXPECT_EQ(style.find(".c1{"), std::string::npos);  // not used
}

// In greyscale print, models differ only by shape.
TEST(Svg, GivesEveryModelItsOwnShape) {
  std::set<std::string> shapes;
  for (int i = 0; i < model_colours; ++i) {
    Svg svg;
    svg.marker(i, 0, 0, "x");
    std::string shape;
    for (const auto& each : SvgReader(svg.document(10, 10, "", "")).all)
      if (each.has_class("mark"))
        shape += each.name + (each.attributes.contains("points") ? each.attributes.at("points") : "");
    EXPECT_FALSE(shape.empty());
    shapes.insert(shape);
  }
  EXPECT_EQ(shapes.size(), static_cast<size_t>(model_colours));
}

TEST(SvgText, WrapsToWidthWithoutLosingText) {
  const std::string text = "Gated DeltaNet − DeltaNet, abcdefghijklmnopqrstuvwxyzäöüßéèñ on tasks 1 and 3";
  for (const bool bold : {false, true})
    for (const double width : {40., 90., 200., 2000.}) {
      std::string back;
      for (const auto& line : wrapped(text, width, bold)) {
        EXPECT_LE(text_width(line, bold), width) << line;
        EXPECT_EQ(one_line(line), line) << "cut inside a character";
        for (const char c : line)
          if (c != ' ') back += c;
      }
      std::string whole = text;
      std::erase(whole, ' ');
      EXPECT_EQ(back, whole);
    }
  EXPECT_EQ(wrapped(text, 2000).size(), 1U);
  EXPECT_EQ(wrapped("", 10).size(), 1U);
}

TEST(SvgAxis, MapsLinearAndLogarithmicScales) {
  const SvgAxis line{10, 30, 100, 0, false}, log{10, 1000, 0, 90, true};
  EXPECT_DOUBLE_EQ(line.at(15), 75);
  EXPECT_NEAR(log.at(100), 45, 1e-9);
}

TEST(SvgAxis, TicksCoverRangeInRoundSteps) {
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<double> place(-3, 3), exponent(-4, 4);
  for (int i = 0; i < 500; ++i) {
    const double low = place(engine), high = low + std::pow(10, exponent(engine));
    const Ticks ticks = ticks_over(low, high, 6);
    ASSERT_GE(ticks.values.size(), 2U);
    EXPECT_LE(ticks.values.size(), 8U);
    EXPECT_LE(ticks.values.front(), low + 1e-8 * (high - low));
    EXPECT_GE(ticks.values.back(), high - 1e-8 * (high - low));
    const double step = ticks.values[1] - ticks.values[0];
    const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6) << step;
    for (const double tick : ticks.values) {
      const double scaled = tick * std::pow(10, ticks.decimals);
      EXPECT_NEAR(scaled, std::round(scaled), 1e-6) << tick;
    }
  }
  EXPECT_EQ(ticks_over(0, .997, 6).values, (std::vector<double>{0, .2, .4, .6, .8, 1}));
  EXPECT_EQ(ticks_over(0, 3125, 6).values, (std::vector<double>{0, 1000, 2000, 3000, 4000}));
  EXPECT_EQ(ticks_over(-.3, .3, 6).decimals, 1);
  EXPECT_GE(ticks_over(.5, .5, 6).values.size(), 2U);
}

TEST(SvgAxis, SpreadsLabelsInOrderWithMinimumDistance) {
  EXPECT_EQ(spread_labels({10, 50, 90}, 15, 0, 100), (std::vector<double>{10, 50, 90}));
  EXPECT_EQ(spread_labels({50, 50}, 10, 0, 100), (std::vector<double>{45, 55}));
  EXPECT_EQ(spread_labels({99, 98}, 10, 0, 100), (std::vector<double>{100, 90}));
  std::mt19937_64 engine(2);
  std::uniform_real_distribution<double> place(0, 100);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> wanted(1 + engine() % 10);
    for (double& each : wanted) each = place(engine);
    const auto placed = spread_labels(wanted, 10, 0, 100);
    for (size_t a = 0; a < wanted.size(); ++a) {
      EXPECT_GE(placed[a], -1e-9);
      EXPECT_LE(placed[a], 100 + 1e-9);
      for (size_t b = 0; b < wanted.size(); ++b)
        if (wanted[a] < wanted[b]) {
          EXPECT_GE(placed[b] - placed[a], 10 - 1e-9);
        }
    }
  }
}

}  // namespace
}  // namespace sb::test
