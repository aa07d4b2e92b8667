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

TEST(Palette, EveryColourContrastsWithBackground) {
  ASSERT_EQ(palette_light().size(), palette_dark().size());
  for (const auto& colour : palette_light()) EXPECT_GE(contrast(colour, "#ffffff"), 3) << colour;
  for (const auto& colour : palette_dark()) EXPECT_GE(contrast(colour, "#121418"), 3) << colour;
}

TEST(Palette, FramesAndAnswersUseNoModelColour) {
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

// Distance in OKLab: a hundredth is just seen side by side.
double distance(const std::string& a, const std::string& b) {
  const auto lab = [](const std::string& colour) {
    const auto c = linear(colour);
    const double l = std::cbrt(.4122214708 * c[0] + .5363325363 * c[1] + .0514459929 * c[2]);
    const double m = std::cbrt(.2119034982 * c[0] + .6806995451 * c[1] + .1073969566 * c[2]);
    const double s = std::cbrt(.0883024619 * c[0] + .2817188376 * c[1] + .6299787005 * c[2]);
    return std::vector<double>{.2104542553 * l + .7936177850 * m - .0040720468 * s,
                               1.9779984951 * l - 2.4285922050 * m + .4505937099 * s,
                               .0259040371 * l + .7827717662 * m - .8086757660 * s};
  };
  const auto x = lab(a), y = lab(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

TEST(Palette, ModelsHaveDistinctColours) {
  std::set<std::string> models = {
      "delta_net",   "gla",    "mamba", "mamba2", "gated_delta_net", "gated_delta_product", "transformer",
      "linear_attn", "retnet", "s4",    "gru",    "linear_attn_elu"};
  for (const char* other : {"a (external)", "b (external)", "c (external)", "d", "e", "f"}) models.insert(other);
  const auto colours = model_colours_of(models);
  std::set<int> used;
  for (const auto& [model, colour] : colours) {
    EXPECT_TRUE(used.insert(colour).second) << model;
    EXPECT_LT(static_cast<size_t>(colour), palette_light().size());
    for (const auto* others : {&frame_colours(), &answer_colours()})
      for (const int other : *others) EXPECT_NE(colour, other) << model;
  }
  EXPECT_EQ(colours.at("retnet"), model_colour("retnet")) << "ours have their own";
  for (const auto* palette : {&palette_light(), &palette_dark()})
    for (const auto& [model, colour] : colours)
      for (const auto& [other, its] : colours)
        if (model < other) {
          EXPECT_GE(distance((*palette)[static_cast<size_t>(colour)], (*palette)[static_cast<size_t>(its)]), .06)
              << model << " and " << other;
        }
}

TEST(Palette, ExternalModelsUseFreeColours) {
  const auto colours = model_colours_of({"transformer", "mine (external)"});
  EXPECT_NE(colours.at("mine (external)"), colours.at("transformer"));
  EXPECT_GE(colours.at("mine (external)"), first_free_colour);
}

// Readers who cannot distinguish hues rely on lightness: two thirds of the contrast required for text.
TEST(Palette, FramesDifferInLightness) {
  for (const auto* palette : {&palette_light(), &palette_dark()}) {
    const auto shade = [&](int colour) { return (*palette)[static_cast<size_t>(colour)]; };
    EXPECT_GE(contrast(shade(frame_colours()[0]), shade(frame_colours()[1])), 3);
    EXPECT_GE(contrast(shade(answer_colours()[1]), shade(answer_colours()[2])), 3);
  }
}

}  // namespace
}  // namespace sb::test
