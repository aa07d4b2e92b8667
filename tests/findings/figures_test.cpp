#include "findings/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/format.h"
#include "report/palette.h"
#include "report/paper.h"
#include "svg_reader.h"

namespace sb::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr double pixel = .02;  // two decimals are written

Difference difference(const std::string& label, double effect, double half, const std::string& verdict = "supported") {
  Difference out;
  out.label = label;
  out.effect = effect;
  if (half > 0) out.interval = Interval{effect - half, effect + half};
  out.verdict = verdict;
  return out;
}

DifferencesFigure forest() {
  DifferencesFigure out{"Differences <at> small", .01, {}};
  out.rows = {difference("Gated DeltaNet − DeltaNet", .166, .011), difference("GLA − RetNet", .043, .02),
              difference("Mamba2 − Gated DeltaNet", -.002, .006, "equivalent"),
              difference("Transformer − Mamba2", .004, 0, "undecided")};
  out.rows[0].heading = out.rows[1].heading = "Gates help recall";
  out.rows[2].heading = out.rows[3].heading = "Channel mixing & attention";
  out.rows[0].paper = .12;
  out.rows[0].paper_spread = .014;
  out.rows[3].decided = false;
  return out;
}

LinesFigure lines(size_t models, const std::vector<double>& at, bool intervals) {
  LinesFigure out{"Accuracy & more", {}, {}};
  for (size_t m = 0; m < models; ++m) {
    const std::string model = paper_models()[m % paper_models().size()];
    Line line{model_title(model) + (m >= paper_models().size() ? ", pre-norm" : ""), model, {}};
    for (size_t i = 0; i < at.size(); ++i) {
      const double y =
          .4 + .07 * static_cast<double>(m) / static_cast<double>(models) + .3 / static_cast<double>(i + 1);
      line.points.push_back({at[i], y, intervals ? std::optional(Interval{y - .02, y + .02}) : std::nullopt});
    }
    out.lines.push_back(line);
  }
  out.references = {{"ceiling", {{0, .997, {}}}}, {"n-gram (n = 6)", {{0, .669, {}}}}, {"chance", {{0, .001, {}}}}};
  return out;
}

const std::vector<double> gap_lengths = {10, 20, 50, 100};

std::vector<double> every(double step, double last) {
  std::vector<double> out;
  for (double x = step; x <= last; x += step) out.push_back(x);
  return out;
}

// From the labels of two ticks to a linear axis; `key` is "x" or "y".
class ReadAxis {
 public:
  ReadAxis(const SvgReader& svg, const std::string& key, const std::string& a, double a_value, const std::string& b,
           double b_value)
      : a_(a_value), b_(b_value) {
    const double shift = key == "y" ? .35 * svg_font : 0;
    EXPECT_EQ(svg.texts(a).size(), 1U) << a;
    EXPECT_EQ(svg.texts(b).size(), 1U) << b;
    from_ = svg.texts(a).at(0).number(key) - shift;
    to_ = svg.texts(b).at(0).number(key) - shift;
  }
  double at(double value) const { return from_ + (value - a_) / (b_ - a_) * (to_ - from_); }

 private:
  double a_, b_, from_ = 0, to_ = 0;
};

void expect_sound(const std::string& file, const std::string& title) {
  const SvgReader svg(file);
  EXPECT_EQ(svg.of("title").at(0).text, title);
  EXPECT_GT(svg.of("desc").at(0).text.size(), 20U);
  EXPECT_EQ(overlaps(svg), "");
  for (const char* word : {"nan", "inf,", "inf\"", "<script", "http://", "url("})
    EXPECT_EQ(file.find(word, file.find("role=")), std::string::npos) << word;  // the name space comes first
}

// The bullets and bars of the rows; the first of each belongs to the legend.
std::vector<SvgElement> rows_of(const SvgReader& svg, const std::string& name, const std::string& one_class) {
  auto out = svg.of(name, one_class);
  const double top = svg.texts("verdict").at(0).number("y");
  std::erase_if(out, [&](const SvgElement& each) {
    return (each.attributes.contains("cy")   ? each.number("cy")
            : each.attributes.contains("y1") ? each.number("y1")
                                             : each.points()[0].second) < top;
  });
  return out;
}

TEST(FindingsFigures, AreEmptyWithoutData) {
  EXPECT_EQ(differences_svg({"title", .01, {}}), "");
  EXPECT_EQ(differences_svg({"title", .01, {difference("a", nan, 0)}}), "");
  LinesFigure only_references = lines(0, {}, false);
  EXPECT_EQ(curves_svg(only_references), "");
  EXPECT_EQ(gaps_svg(only_references), "");
  only_references.lines = {{"GLA", "gla", {{10, nan, {}}}}};
  EXPECT_EQ(gaps_svg(only_references), "");
  only_references.lines = {{"GLA", "gla", {{0, .5, {}}}}};  // no place on a logarithmic axis
  EXPECT_EQ(gaps_svg(only_references), "");
}

TEST(FindingsFigures, AreReproducible) {
  EXPECT_EQ(differences_svg(forest()), differences_svg(forest()));
  EXPECT_EQ(gaps_svg(lines(7, gap_lengths, true)), gaps_svg(lines(7, gap_lengths, true)));
  EXPECT_EQ(curves_svg(lines(7, every(25, 3125), true)), curves_svg(lines(7, every(25, 3125), true)));
}

TEST(DifferencesFigure, ShowsEveryRowWithItsNumbersAndItsVerdict) {
  const std::string file = differences_svg(forest());
  expect_sound(file, "Differences <at> small");
  const SvgReader svg(file);
  for (const char* text : {"Differences <at> small", "Gates help recall", "Channel mixing & attention", "GLA − RetNet",
                           "Gated DeltaNet − DeltaNet", "Mamba2 − Gated DeltaNet", "Transformer − Mamba2", "+16.6",
                           "[+15.5, +17.7]", "−0.2", "[−0.8, +0.4]", "+0.4", "–", "equivalent", "undecided"})
    EXPECT_EQ(svg.texts(text).size(), 1U) << text;
  EXPECT_EQ(svg.texts("supported").size(), 2U);
  EXPECT_NE(svg.of("desc")[0].text.find("Gates help recall, Gated DeltaNet − DeltaNet: +16.6, 95 % interval +15.5 to "
                                        "+17.7, paper +12.0 ± 1.4, supported."),
            std::string::npos)
      << svg.of("desc")[0].text;
}

TEST(DifferencesFigure, PlacesMarksByAxis) {
  const DifferencesFigure figure = forest();
  const SvgReader svg(differences_svg(figure));
  const ReadAxis axis(svg, "x", "0", 0, "+15", 15);
  const auto bullets = rows_of(svg, "circle", "mark");
  ASSERT_EQ(bullets.size(), figure.rows.size());
  for (size_t i = 0; i < bullets.size(); ++i) {
    EXPECT_NEAR(bullets[i].number("cx"), axis.at(figure.rows[i].effect * 100), pixel);
    EXPECT_TRUE(bullets[i].has_class(figure.rows[i].decided ? "effect" : "quiet"));
  }
  const auto bars = rows_of(svg, "line", "bar");
  ASSERT_EQ(bars.size(), 3U);  // the last row has no interval
  for (size_t i = 0; i < bars.size(); ++i) {
    EXPECT_NEAR(bars[i].number("x1"), axis.at(figure.rows[i].interval->low * 100), pixel);
    EXPECT_NEAR(bars[i].number("x2"), axis.at(figure.rows[i].interval->high * 100), pixel);
  }
  const auto papers = rows_of(svg, "polygon", "outline");
  ASSERT_EQ(papers.size(), 1U);
  EXPECT_NEAR(papers[0].points()[0].first, axis.at(12), pixel);
  const auto whiskers = rows_of(svg, "line", "whisker");
  ASSERT_EQ(whiskers.size(), 1U);
  EXPECT_NEAR(whiskers[0].number("x1"), axis.at(10.6), pixel);
  const auto bands = svg.of("rect", "band");  // the legend's, then the plot's
  ASSERT_EQ(bands.size(), 2U);
  EXPECT_NEAR(bands[1].number("x"), axis.at(-1), pixel);
  EXPECT_NEAR(bands[1].number("x") + bands[1].number("width"), axis.at(1), 2 * pixel);
}

TEST(DifferencesFigure, LegendNamesThePaperOnlyIfARowHasIt) {
  DifferencesFigure figure = forest();
  EXPECT_EQ(SvgReader(differences_svg(figure)).texts("the paper's difference and its ±").size(), 1U);
  figure.rows[0].paper_spread = 0;
  EXPECT_EQ(SvgReader(differences_svg(figure)).texts("the paper's difference").size(), 1U);
  figure.rows[0].paper.reset();
  EXPECT_EQ(SvgReader(differences_svg(figure)).texts("the paper's difference").size(), 0U);
}

TEST(DifferencesFigure, CutsOverlongIntervalAndAddsArrow) {
  DifferencesFigure figure = forest();
  const auto arrows = [](const DifferencesFigure& each) {
    return rows_of(SvgReader(differences_svg(each)), "polygon", "effect").size();
  };
  EXPECT_EQ(arrows(figure), 0U);
  figure.rows[1].interval = Interval{-2, .05};
  EXPECT_EQ(arrows(figure), 1U);
  figure.rows[1].interval = Interval{-2, 2};
  EXPECT_EQ(arrows(figure), 2U);
  const SvgReader svg(differences_svg(figure));
  EXPECT_EQ(svg.texts("[−200.0, +200.0]").size(), 1U);
  const ReadAxis axis(svg, "x", "0", 0, "+15", 15);
  const auto bullets = rows_of(svg, "circle", "mark");
  EXPECT_NEAR(bullets[0].number("cx"), axis.at(16.6), pixel);  // the others keep their room
  EXPECT_GT(axis.at(16.6) - axis.at(0), 100);
}

TEST(DifferencesFigure, WrapsLongTextsWithoutOverlap) {
  DifferencesFigure figure = forest();
  figure.title =
      "A title that is much longer than the figure is wide, and goes on about scales, tasks, grammars, seeds, "
      "models and whatever else may be said of comparisons";
  figure.rows[1].label = "Gated DeltaNet without its delta term − Gated DeltaNet with everything the paper has, task 3";
  figure.rows[1].verdict = "undecided: repeat gated_delta_product_with_a_name_without_spaces, seed 3";
  figure.rows[2].heading = "Channel mixing is not needed for selectivity, but critical for generalisation to long gaps";
  figure.rows[0].effect = -1;
  figure.rows[0].interval = Interval{-1.11, -.89};
  const std::string file = differences_svg(figure);
  expect_sound(file, figure.title);
  const SvgReader svg(file);
  const auto axes = svg.of("line", "axis");  // at 0, and below the rows
  ASSERT_EQ(axes.size(), 2U);
  const SvgElement &zero = axes[0], &below = axes[1];
  for (const Box& box : text_boxes(svg))
    if (box.bottom > zero.number("y1") && box.top < zero.number("y2")) {
      EXPECT_TRUE(box.right < below.number("x1") || box.left > below.number("x2")) << box.text << " is in the plot";
    }
  std::string shown;
  for (const auto& text : svg.of("text")) shown += text.text + " ";
  std::erase(shown, ' ');
  for (std::string text : {figure.title, figure.rows[1].label, figure.rows[1].verdict, figure.rows[2].heading}) {
    std::erase(text, ' ');
    EXPECT_NE(shown.find(text), std::string::npos) << text;
  }
}

TEST(DifferencesFigure, OmitsNonFiniteValues) {
  DifferencesFigure figure = forest();
  figure.rows.push_back(difference("no effect", nan, 0));
  figure.rows[0].interval = Interval{-infinity, infinity};
  figure.rows[0].paper = nan;
  const std::string file = differences_svg(figure);
  expect_sound(file, figure.title);
  EXPECT_EQ(SvgReader(file).texts("no effect").size(), 0U);
  EXPECT_EQ(rows_of(SvgReader(file), "circle", "mark").size(), 4U);
}

TEST(GapsFigure, PlacesPointsAndReferencesByAxes) {
  const LinesFigure figure = lines(1, gap_lengths, true);
  const std::string file = gaps_svg(figure);
  expect_sound(file, figure.title);
  const SvgReader svg(file);
  const ReadAxis decades(svg, "x", "10", 1, "100", 2), shares(svg, "y", "0", 0, "1", 1);
  const auto path = svg.of("polyline", "line");
  ASSERT_EQ(path.size(), 1U);
  const auto points = path[0].points();
  ASSERT_EQ(points.size(), 4U);
  const auto marks = svg.of("circle", "mark");
  ASSERT_EQ(marks.size(), 5U);  // and that of the label
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(points[i].first, decades.at(std::log10(gap_lengths[i])), pixel);
    EXPECT_NEAR(points[i].second, shares.at(figure.lines[0].points[i].y), pixel);
    EXPECT_NEAR(marks[i].number("cx"), points[i].first, pixel);
    EXPECT_NEAR(marks[i].number("cy"), points[i].second, pixel);
  }
  const auto bars = svg.of("line", "bar");
  ASSERT_EQ(bars.size(), 12U);  // and two caps each
  EXPECT_NEAR(bars[0].number("y1"), shares.at(figure.lines[0].points[0].interval->low), pixel);
  EXPECT_NEAR(bars[0].number("y2"), shares.at(figure.lines[0].points[0].interval->high), pixel);
  const auto dashed = svg.of("line", "dashed");  // three lines, then their samples
  ASSERT_EQ(dashed.size(), 6U);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(dashed[i].number("y1"), shares.at(figure.references[i].points[0].y), pixel);
  for (const char* pattern : {"d0", "d1", "d2"}) EXPECT_EQ(svg.of("line", pattern).size(), 2U);
}

TEST(GapsFigure, DrawsBarsOfModelsSideBySide) {
  const SvgReader svg(gaps_svg(lines(3, gap_lengths, true)));
  const auto paths = svg.of("polyline", "line");
  ASSERT_EQ(paths.size(), 3U);
  EXPECT_GT(paths[1].points()[0].first, paths[0].points()[0].first + 3);
  EXPECT_GT(paths[2].points()[0].first, paths[1].points()[0].first + 3);
  const auto still = SvgReader(gaps_svg(lines(3, gap_lengths, false))).of("polyline", "line");
  EXPECT_EQ(still[0].points()[0].first, still[2].points()[0].first);
}

TEST(GapsFigure, ClipsIntervalsToAccuracyRange) {
  LinesFigure figure = lines(1, gap_lengths, true);
  figure.lines[0].points[0].interval = Interval{-.3, 1.3};
  const SvgReader svg(gaps_svg(figure));
  const ReadAxis shares(svg, "y", "0", 0, "1", 1);
  EXPECT_NEAR(svg.of("line", "bar")[0].number("y1"), shares.at(0), pixel);
  EXPECT_NEAR(svg.of("line", "bar")[0].number("y2"), shares.at(1), pixel);
}

TEST(GapsFigure, DrawsReferenceThatDependsOnGap) {
  LinesFigure figure = lines(2, gap_lengths, false);
  figure.references[0].points = {{10, .99, {}}, {20, .98, {}}, {50, .95, {}}, {100, .9, {}}};
  const SvgReader svg(gaps_svg(figure));
  const ReadAxis decades(svg, "x", "10", 1, "100", 2), shares(svg, "y", "0", 0, "1", 1);
  const auto path = svg.of("polyline", "dashed");
  ASSERT_EQ(path.size(), 1U);
  EXPECT_NEAR(path[0].points()[2].second, shares.at(.95), pixel);
  EXPECT_NEAR(path[0].points()[2].first, decades.at(std::log10(50)), pixel);
  EXPECT_NE(svg.of("desc")[0].text.find("ceiling: .990 at 10, .980 at 20, .950 at 50, .900 at 100."), std::string::npos)
      << svg.of("desc")[0].text;
}

TEST(CurvesFigure, PlacesPointsBandsAndReferencesByAxes) {
  const LinesFigure figure = lines(2, every(25, 3125), true);
  const std::string file = curves_svg(figure);
  expect_sound(file, figure.title);
  const SvgReader svg(file);
  const ReadAxis updates(svg, "x", "1,000", 1000, "3,000", 3000), shares(svg, "y", ".2", .2, "1", 1);
  const auto paths = svg.of("polyline", "line");
  ASSERT_EQ(paths.size(), 2U);
  for (size_t m = 0; m < 2; ++m) {
    const auto points = paths[m].points();
    ASSERT_EQ(points.size(), 125U);
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(points[i].first, updates.at(figure.lines[m].points[i].x), pixel);
      EXPECT_NEAR(points[i].second, shares.at(figure.lines[m].points[i].y), pixel);
    }
  }
  const auto bands = svg.of("polygon", "spread");
  ASSERT_EQ(bands.size(), 2U);
  ASSERT_EQ(bands[0].points().size(), 250U);
  EXPECT_NEAR(bands[0].points()[0].second, shares.at(figure.lines[0].points[0].interval->high), pixel);
  EXPECT_NEAR(bands[0].points()[249].second, shares.at(figure.lines[0].points[0].interval->low), pixel);
  EXPECT_TRUE(SvgReader(curves_svg(lines(2, every(25, 3125), false))).of("polygon", "spread").empty());
  EXPECT_NEAR(svg.of("line", "dashed")[1].number("y1"), shares.at(.669), pixel);
}

TEST(LinesFigures, LabelEveryLineWithoutOverlap) {
  for (const size_t models : {1U, 7U, 14U, 30U})
    for (const bool gaps : {true, false}) {
      LinesFigure figure = lines(models, gaps ? gap_lengths : every(25, 3125), gaps);
      for (size_t i = 0; i < figure.lines.size(); ++i) figure.lines[i].label += formatted(" {}", i);
      figure.lines.back().label += ", pre-norm, convolution over 4 frames, learning rate 0.002, two layers of an MLP";
      figure.lines.front().points.resize(2);  // one that ends early
      const std::string file = gaps ? gaps_svg(figure) : curves_svg(figure);
      expect_sound(file, figure.title);
      const SvgReader svg(file);
      for (const auto& line : figure.lines) EXPECT_EQ(svg.texts(line.label).size(), 1U) << line.label;
      for (const auto& line : figure.references) EXPECT_EQ(svg.texts(line.label).size(), 1U) << line.label;
    }
}

TEST(LinesFigures, UseReportColoursAndMarkSecondLinesOfModel) {
  const LinesFigure figure = lines(14, gap_lengths, false);
  const SvgReader svg(gaps_svg(figure));
  const auto paths = svg.of("polyline", "line");
  ASSERT_EQ(paths.size(), 14U);
  for (size_t i = 0; i < 14; ++i) {
    EXPECT_TRUE(paths[i].has_class(formatted("c{}", model_colour(figure.lines[i].model))));
    EXPECT_EQ(paths[i].has_class("again"), i >= 7) << i;
  }
  size_t hollow = 0;
  for (const auto& each : svg.all) hollow += each.has_class("mark") && each.has_class("hollow");
  EXPECT_EQ(hollow, 7U * 5);
}

TEST(LinesFigures, AcceptSinglePoint) {
  LinesFigure figure{"t", {{"GLA", "gla", {{10, .5, {}}}}}, {}};
  for (const std::string& file : {gaps_svg(figure), curves_svg(figure)}) {
    expect_sound(file, "t");
    EXPECT_EQ(SvgReader(file).of("polygon", "mark").size(), 2U);
    EXPECT_TRUE(SvgReader(file).of("polyline").empty());
  }
  figure.lines[0].points[0] = {10, 0, Interval{-infinity, nan}};
  expect_sound(gaps_svg(figure), "t");
}

}  // namespace
}  // namespace sb::test
