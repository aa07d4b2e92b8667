#include "findings/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "report/palette.h"

namespace sb {
namespace {

// Advance widths of DejaVu Sans from ' ' to '~', hundredths of the font size, rounded up.
constexpr std::array<unsigned char, 95> advances = {
    32, 41, 46, 84, 64, 96, 78, 28, 40,  40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69,  62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};
constexpr double bold_factor = 1.25;   // no letter grows by more
constexpr double other_advance = 1.0;  // beyond ASCII

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// The part of a word that fits, at least one character.
size_t fitting(const std::string& word, double width, bool bold) {
  size_t end = 0;
  for (size_t next = 1; next <= word.size(); ++next) {
    if (next < word.size() && !begins_character(word[next])) continue;
    if (end > 0 && text_width(word.substr(0, next), bold) > width) break;
    end = next;
  }
  return end;
}

struct Theme {
  const char *ground, *ink, *muted, *grid, *axis, *band, *effect, *quiet;
};
// Those of web/page.css; `effect` is the first colour of the palette.
constexpr Theme light = {"#ffffff", "#16191d", "#525a66", "#e4e8ed", "#8a93a0", "#e3ecf7", "#0072b2", "#8a93a0"};
constexpr Theme dark = {"#121418", "#e9ebee", "#aeb6c2", "#2a303a", "#79828f", "#22344a", "#56b4e9", "#79828f"};

std::string colour_rules(const Theme& t, const std::vector<std::string>& palette, const std::vector<int>& used) {
  std::string out = formatted(
      ".ground{{fill:{0}}}text{{fill:{1}}}text.muted{{fill:{2}}}.grid{{stroke:{3}}}.axis,.leader{{stroke:{4}}}"
      ".dashed{{stroke:{2}}}.band{{fill:{5}}}.effect{{fill:{6};stroke:{6}}}.quiet{{fill:{7};stroke:{7}}}"
      ".outline{{fill:{0};stroke:{1}}}.whisker{{stroke:{1}}}",
      t.ground, t.ink, t.muted, t.grid, t.axis, t.band, t.effect, t.quiet);
  for (const int colour : used)
    out += formatted(".c{0}{{fill:{1};stroke:{1}}}", colour, palette[static_cast<size_t>(colour)]);
  return out + formatted(".hollow{{fill:{}}}", t.ground);
}

}  // namespace

std::string svg_number(double value) {
  if (!std::isfinite(value)) throw Error(Exit::bad_input, "[figure] a coordinate is not finite");
  std::string out = fixed(value, 2);
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string svg_escaped(std::string_view text) {
  return xml_escaped(one_line(text));
}

double text_width(std::string_view text, bool bold) {
  double em = 0;
  for (const char c : one_line(text)) {
    if (c >= ' ' && c <= '~')
      em += advances[static_cast<size_t>(c - ' ')] / 100.0;
    else if (begins_character(c))
      em += other_advance;
  }
  return em * svg_font * (bold ? bold_factor : 1);
}

std::vector<std::string> wrapped(const std::string& text, double width, bool bold) {
  std::vector<std::string> lines;
  std::string line;
  for (std::string word : split(one_line(text), ' ')) {
    if (word.empty()) continue;
    if (const std::string both = line.empty() ? word : line + " " + word; text_width(both, bold) <= width) {
      line = both;
      continue;
    }
    if (!line.empty()) lines.push_back(line);
    for (; text_width(word, bold) > width; word = word.substr(lines.back().size())) {
      const size_t end = fitting(word, width, bold);
      if (end == word.size()) break;
      lines.push_back(word.substr(0, end));
    }
    line = word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

void Svg::rect(double x, double y, double width, double height, const std::string& classes) {
  body_ += formatted("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", classes, svg_number(x),
                     svg_number(y), svg_number(width), svg_number(height));
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& classes) {
  body_ += formatted("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", classes, svg_number(x1),
                     svg_number(y1), svg_number(x2), svg_number(y2));
}

void Svg::shape(const char* name, const Points& points, const std::string& classes) {
  std::vector<std::string> parts;
  for (const auto& [x, y] : points) parts.push_back(svg_number(x) + "," + svg_number(y));
  body_ += formatted("<{} class=\"{}\" points=\"{}\"/>\n", name, classes, joined(parts, " "));
}

void Svg::polyline(const Points& points, const std::string& classes) {
  shape("polyline", points, classes);
}

void Svg::polygon(const Points& points, const std::string& classes) {
  shape("polygon", points, classes);
}

void Svg::text(double x, double y, const std::string& text, const std::string& classes, Anchor anchor) {
  static constexpr const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  body_ += formatted("<text class=\"{}\" x=\"{}\" y=\"{}\"{}>{}</text>\n", classes, svg_number(x),
                     svg_number(y + .35 * svg_font), anchors[static_cast<size_t>(anchor)], svg_escaped(text));
}

void Svg::marker(int shape, double x, double y, const std::string& classes, bool filled) {
  const std::string all = "mark " + classes + (filled ? "" : " hollow");
  // Coordinates of the corners, x and y in turn.
  static const std::array<std::vector<double>, 12> shapes = {{
      {},                                                                  // circle
      {-3.6, -3.6, 3.6, -3.6, 3.6, 3.6, -3.6, 3.6},                        // square
      {0, -4.8, 4.6, 3.4, -4.6, 3.4},                                      // triangle
      {0, -5.2, 5.2, 0, 0, 5.2, -5.2, 0},                                  // diamond
      {0, 4.8, 4.6, -3.4, -4.6, -3.4},                                     // triangle on its tip
      {-1.6, -5, 1.6,  -5, 1.6,  -1.6, 5,  -1.6, 5,  1.6,  1.6,  1.6,      //
       1.6,  5,  -1.6, 5,  -1.6, 1.6,  -5, 1.6,  -5, -1.6, -1.6, -1.6},    // plus
      {-4.6, -2.4, -2.4, -4.6, 0, -2.2, 2.4,  -4.6, 4.6,  -2.4, 2.2,  0,   //
       4.6,  2.4,  2.4,  4.6,  0, 2.2,  -2.4, 4.6,  -4.6, 2.4,  -2.2, 0},  // cross
      {4.8, 0, -3.4, 4.6, -3.4, -4.6},                                     // triangle to the right
      {-4.8, 0, 3.4, 4.6, 3.4, -4.6},                                      // triangle to the left
      {-4, -4.4, 4, -4.4, -4, 4.4, 4, 4.4},                                // hourglass
      {-2, -5, 2, -5, 2, 5, -2, 5},                                        // upright bar
      {-5, -2, 5, -2, 5, 2, -5, 2},                                        // lying bar
  }};
  const auto& corners = shapes[static_cast<size_t>(shape % 12)];
  if (corners.empty())
    body_ += formatted("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"4\"/>\n", all, svg_number(x), svg_number(y));
  Points points;
  for (size_t i = 0; i < corners.size(); i += 2) points.emplace_back(x + corners[i], y + corners[i + 1]);
  if (!points.empty()) polygon(points, all);
}

std::string Svg::series_class(int colour) {
  const auto at = std::lower_bound(colours_.begin(), colours_.end(), colour);
  if (at == colours_.end() || *at != colour) colours_.insert(at, colour);
  return formatted("c{}", colour);
}

std::string Svg::document(double width, double height, const std::string& title, const std::string& description) const {
  std::string out = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n<desc id=\"desc\">{3}</desc>\n",
      svg_number(width), svg_number(height), svg_escaped(title), svg_escaped(description));
  out += formatted(
      "<style>\ntext{{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"Liberation Sans\",Arial,"
      "sans-serif;font-size:{}px}}.bold{{font-weight:600}}\n"
      ".bar{{stroke-width:1.3}}.effect.bar,.quiet.bar,.line{{stroke-width:2}}.mark{{stroke-width:1.2}}"
      ".dashed{{stroke-width:1.5}}.leader{{stroke-width:.8}}.d0{{stroke-dasharray:8 4}}.d1{{stroke-dasharray:2 3}}"
      ".d2{{stroke-dasharray:8 3 2 3}}.line.again{{stroke-dasharray:6 2}}\n"
      "polyline.line,polyline.dashed{{fill:none;stroke-linejoin:round}}polygon.spread{{stroke:none;fill-opacity:.15}}\n"
      "{}\n@media (prefers-color-scheme:dark){{{}}}\n</style>\n",
      svg_font, colour_rules(light, palette_light(), colours_), colour_rules(dark, palette_dark(), colours_));
  out += formatted("<rect class=\"ground\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n", svg_number(width),
                   svg_number(height));
  return out + body_ + "</svg>\n";
}

}  // namespace sb
