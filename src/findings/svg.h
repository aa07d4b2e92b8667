// Writes figures as SVG: shapes and text by coordinates, colours by class, so that one file serves light and dark.
//
// Coordinates are pixels, y downwards, written with two decimals: the same numbers give the same bytes everywhere.
// There are no scripts, no external fonts and no CSS variables, so that converters draw what a browser draws.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sb {

constexpr double svg_font = 13, svg_line = 17;  // text size and distance of baselines, pixels

// "12.5": two decimals at most. Throws if the value is not finite.
std::string svg_number(double value);
// Markup characters escaped; control characters and bytes that are not UTF-8 as \xNN.
std::string svg_escaped(std::string_view text);
// Upper bound on the width of the text at font size svg_font: the advance widths of DejaVu Sans, the widest font in
// common use.
double text_width(std::string_view text, bool bold = false);
// Breaks the text into lines of at most this width, at spaces; inside a word only if the word is wider.
std::vector<std::string> wrapped(const std::string& text, double width, bool bold = false);

class Svg {
 public:
  enum class Anchor { start, middle, end };
  using Points = std::vector<std::pair<double, double>>;

  // Classes of text: ink, muted, bold; of lines: grid, axis, leader, bar, line, dashed with d0, d1 or d2, whisker; of
  // areas: band, spread; of marks: effect, quiet, outline; and the colours of series_class.
  void rect(double x, double y, double width, double height, const std::string& classes);
  void line(double x1, double y1, double x2, double y2, const std::string& classes);
  void polyline(const Points& points, const std::string& classes);
  void polygon(const Points& points, const std::string& classes);
  // y is the middle of lowercase letters.
  void text(double x, double y, const std::string& text, const std::string& classes, Anchor anchor = Anchor::start);
  // Draws one of 12 shapes that can be told apart without colours; `filled` false: only the outline.
  void marker(int shape, double x, double y, const std::string& classes, bool filled = true);

  // The class for a palette colour (report/palette.h), for lines and markers.
  std::string series_class(int colour);

  // The complete file. `title` and `description` are for readers who cannot see the figure.
  std::string document(double width, double height, const std::string& title, const std::string& description) const;

 private:
  void shape(const char* name, const Points& points, const std::string& classes);

  std::string body_;
  std::vector<int> colours_;  // in use, sorted
};

}  // namespace sb
