// Colours: one meaning each, seen on their ground.
#include "report/palette.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sb::test {
namespace {

std::vector<double> linear(const std::string& colour) {
  std::vector<double> out;
  for (const size_t at : {1, 3, 5}) {
    const double c = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    out.push_back(c <= .04045 ? c / 12.92 : std::pow((c + .055) / 1.055, 2.4));
  }
  return out;
}

double luminance(const std::string& colour) {
  const auto c = linear(colour);
  return .2126 * c[0] + .7152 * c[1] + .0722 * c[2];
}

double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + .05) / (std::min(x, y) + .05);
}

TEST(Palette, EveryColourIsSeenOnItsGround) {
  ASSERT_EQ(palette_light().size(), palette_dark().size());
  for (const auto& colour : palette_light()) EXPECT_GE(contrast(colour, "#ffffff"), 3) << colour;
  for (const auto& colour : palette_dark()) EXPECT_GE(contrast(colour, "#121418"), 3) << colour;
}

TEST(Palette, FramesAndAnswersHaveNoColourOfAModel) {
  for (const auto* palette : {&palette_light(), &palette_dark()}) {
    EXPECT_EQ(std::set<std::string>(palette->begin(), palette->end()).size(), palette->size());
    for (const auto* colours : {&frame_colours(), &answer_colours()})
      for (const int colour : *colours) {
        EXPECT_GE(colour, model_colours);
        EXPECT_LT(static_cast<size_t>(colour), palette->size());
      }
  }
  for (const char* model : {"gla", "gru", "linear_attn_elu", "my model (external)", "another", "x"})
    EXPECT_LT(model_colour(model), model_colours) << model;
}

// Lightness alone tells them apart for whoever sees no hues: two thirds of the contrast a letter needs.
TEST(Palette, FramesDifferInLightness) {
  for (const auto* palette : {&palette_light(), &palette_dark()}) {
    const auto shade = [&](int colour) { return (*palette)[static_cast<size_t>(colour)]; };
    EXPECT_GE(contrast(shade(frame_colours()[0]), shade(frame_colours()[1])), 3);
    EXPECT_GE(contrast(shade(answer_colours()[1]), shade(answer_colours()[2])), 3);
  }
}

}  // namespace
}  // namespace sb::test
