// The figures of docs/findings.md as SVG files. Accuracies and their differences are shares: .01 is one point. Every
// function returns the complete file, or an empty string if there is nothing to draw. The same input gives the same
// bytes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/statistics.h"

namespace sb {

// One comparison: a row of the forest plot.
struct Difference {
  std::string heading;               // shown once above neighbouring rows that share it; may be empty
  std::string label;                 // "Mamba2 − GLA"
  double effect = 0;                 // rows whose effect is not finite are left out
  std::optional<Interval> interval;  // 95 %; absent: fewer than two grammars
  std::optional<double> paper;       // the paper's own difference
  double paper_spread = 0;           // its ±; 0: not known
  std::string verdict;               // "supported"
  bool decided = true;               // false: drawn in grey
};
struct DifferencesFigure {
  std::string title;
  double delta = .01;  // differences within ± delta count as none; shaded
  std::vector<Difference> rows;
};
std::string differences_svg(const DifferencesFigure& figure);

// Non-finite points are skipped, with their bands and bars.
struct LinePoint {
  double x = 0, y = 0;
  std::optional<Interval> interval;
};
LinePoint mean_point(double x, const std::vector<double>& accuracies);  // the mean and its 95 % interval
struct Line {
  std::string label;  // "Gated DeltaNet"
  std::string model;  // "gated_delta_net": colour and marker; a second line of the same model is hollow and dashed
  std::vector<LinePoint> points;   // by growing x
  std::optional<int> colour = {};  // of the palette; absent: the model's own
};
// Reference for models: "n-gram", "ceiling", "chance". A single point means the same value at every x.
struct ReferenceLine {
  std::string label;
  std::vector<LinePoint> points;
};
struct LinesFigure {
  std::string title;
  std::vector<Line> lines;
  std::vector<ReferenceLine> references;  // dashed; without lines there is no figure
};
std::string curves_svg(const LinesFigure& figure);  // x: updates; y: accuracy on valid; intervals as bands
std::string gaps_svg(const LinesFigure& figure);  // x: gap length, logarithmic; y: accuracy on test; intervals as bars

}  // namespace sb
