#include "grammar/draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_set>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "grammar/build.h"

namespace sb {
namespace {

constexpr double kTau = 2 * std::numbers::pi;
constexpr const char* kInk = "#23262f";
constexpr const char* kFont = "font-family=\"Helvetica, Arial, sans-serif\"";

struct Point {
  double x, y;
};
Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y};
}
Point operator-(Point a, Point b) {
  return {a.x - b.x, a.y - b.y};
}
Point operator*(double f, Point a) {
  return {f * a.x, f * a.y};
}
double length(Point a) {
  return std::hypot(a.x, a.y);
}
Point along(double angle) {
  return {std::sin(angle), -std::cos(angle)};
}  // clockwise from the top

// A colour of given lightness and chroma in OKLCH, hue in turns: equal steps look equally far apart.
std::string oklch(double lightness, double chroma, double hue) {
  const double a = chroma * std::cos(kTau * hue), b = chroma * std::sin(kTau * hue);
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  const auto channel = [](double linear) {
    const double v = std::clamp(linear, 0.0, 1.0);
    return static_cast<int>(std::lround(255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055)));
  };
  return formatted("#{:02x}{:02x}{:02x}", channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
                   channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
                   channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s));
}

// Symbols in class order go once round the colour wheel; '#' is ink.
std::string colour(const Automaton& a, int symbol, double lightness, double chroma = 0.13) {
  if (symbol == 0) return kInk;
  return oklch(lightness, chroma, 0.05 + static_cast<double>(symbol - 1) / std::max(1, a.vocab - 1));
}

std::string symbol_name(int symbol) {
  return symbol == 0 ? "#" : letter_name(symbol - 1);
}

std::vector<int32_t> states_by_id(const Automaton& a) {
  std::vector<int32_t> order(a.names.size());
  for (int s = 0; s < a.states(); ++s) order[a.id[s]] = s;
  return order;
}

bool is_start(const Automaton& a, int s) {
  return std::find(a.start.begin(), a.start.end(), s) != a.start.end();
}

std::string summary(const Automaton& a) {
  return formatted("{} states · {} transitions · {} symbols · {} start states", grouped(a.names.size()),
                   grouped(a.dst.size()), a.vocab, a.start.size());
}

std::string head(double width, double height, const Automaton& a) {
  return formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n"
      "<title>Automaton: {2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fdfcfa\"/>\n",
      width, height, summary(a));
}

std::string label(Point at, double size, const std::string& text, const std::string& fill,
                  const char* anchor = "middle", const char* weight = "normal") {
  return formatted(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" {} font-size=\"{:.1f}\" font-weight=\"{}\" fill=\"{}\" "
      "text-anchor=\"{}\">{}</text>\n",
      at.x, at.y + 0.35 * size, kFont, size, weight, fill, anchor, xml_escaped(text));
}

// States on a circle in id order, so that states of one symbol stand together; edges bend towards the middle and take
// the colour of their source; a likelier edge is stronger.
class CirclePicture {
 public:
  explicit CirclePicture(const Automaton& a) : a_(a), n_(a.states()) {
    node_ = n_ <= 16 ? 21 : 16;
    radius_ = std::max(130.0, n_ * node_ * 3.1 / kTau);
    const double margin = node_ * 3.6;
    centre_ = {radius_ + margin, radius_ + margin};
    for (int s = 0; s < n_; ++s) angle_.push_back(kTau * a_.id[s] / n_);
  }

  std::string draw() const {
    const double size = 2 * centre_.x;
    std::string out = head(size, size + 34, a_);
    for (int s = 0; s < n_; ++s) {
      for (int e = a_.row[s]; e < a_.row[s + 1]; ++e) out += edge(s, a_.dst[e], a_.prob[e]);
    }
    for (const int s : a_.start) out += start_mark(s);
    for (int s = 0; s < n_; ++s) out += state(s);
    return out + label({centre_.x, size + 10}, 12.5, summary(a_), "#6b6f7b") + "</svg>\n";
  }

 private:
  Point place(int s) const { return centre_ + radius_ * along(angle_[s]); }

  std::string arrow(Point tip, Point direction, double size, const std::string& fill, double opacity) const {
    const Point d = (1 / length(direction)) * direction, side = {-d.y, d.x};
    const Point back = tip - size * d, left = back + 0.45 * size * side, right = back - 0.45 * size * side;
    return formatted("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" fill=\"{}\" fill-opacity=\"{:.2f}\"/>\n",
                     tip.x, tip.y, left.x, left.y, right.x, right.y, fill, opacity);
  }

  std::string edge(int from, int to, double prob) const {
    const std::string paint = colour(a_, a_.symbol[from], 0.60);
    const double width = 1.0 + 1.6 * prob, opacity = 0.45 + 0.5 * prob, head_size = 7.5 + 2.5 * prob;
    const auto path = [&](const std::string& d) {
      return formatted(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\"/>\n", d, paint,
          width, opacity);
    };
    const std::string title = formatted("<g><title>{} → {}: {}</title>\n", xml_escaped(a_.names[from]),
                                        xml_escaped(a_.names[to]), shortest(prob));
    const Point p = place(from), q = place(to);
    if (from == to) {
      const Point out = along(angle_[from]), side = {-out.y, out.x};
      const Point begin = p + 0.8 * node_ * out - 0.6 * node_ * side, end = p + 0.8 * node_ * out + 0.6 * node_ * side;
      const Point c1 = begin + 1.6 * node_ * out - 0.9 * node_ * side,
                  c2 = end + 1.6 * node_ * out + 0.9 * node_ * side;
      const Point stop = end + 0.6 * head_size * (1 / length(c2 - end)) * (c2 - end);
      return title +
             path(formatted("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", begin.x, begin.y, c1.x, c1.y,
                            c2.x, c2.y, stop.x, stop.y)) +
             arrow(end, end - c2, head_size, paint, opacity) + "</g>\n";
    }
    // The control point lies between the chord and the centre, shifted to one side so that s → t and t → s part.
    const Point middle = 0.5 * (p + q), chord = q - p, side = (1 / length(chord)) * Point{-chord.y, chord.x};
    const Point control = middle + 0.42 * (centre_ - middle) + 0.11 * length(chord) * side;
    const Point into = q - control, out = control - p;
    const Point begin = p + (node_ / length(out)) * out, tip = q - ((node_ + 1.5) / length(into)) * into;
    const Point stop = tip - (0.8 * head_size / length(into)) * into;
    return title +
           path(formatted("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", begin.x, begin.y, control.x, control.y, stop.x,
                          stop.y)) +
           arrow(tip, into, head_size, paint, opacity) + "</g>\n";
  }

  std::string start_mark(int s) const {
    const Point out = along(angle_[s]);
    const bool loops =
        std::find(a_.dst.begin() + a_.row[s], a_.dst.begin() + a_.row[s + 1], s) != a_.dst.begin() + a_.row[s + 1];
    // Beside a self-loop, which leaves straight outwards.
    const Point direction = loops ? Point{0.5 * out.x - 0.87 * out.y, 0.87 * out.x + 0.5 * out.y} : out;
    const Point tip = place(s) + (node_ + 4) * direction, tail = place(s) + (node_ + 26) * direction;
    const Point stop = tip + 7 * direction;
    return formatted(
               "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" stroke-width=\"2.2\" "
               "stroke-linecap=\"round\"/>\n",
               tail.x, tail.y, stop.x, stop.y, kInk) +
           arrow(tip, tip - tail, 10, kInk, 1);
  }

  std::string state(int s) const {
    const Point at = place(s);
    const bool end = s == a_.end;
    std::string out =
        formatted("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                  at.x, at.y, node_, end ? kInk : colour(a_, a_.symbol[s], 0.92, 0.06),
                  end ? kInk : colour(a_, a_.symbol[s], 0.55), is_start(a_, s) ? 2.8 : 1.6);
    if (end) {
      out += formatted(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"none\" stroke=\"#fdfcfa\" stroke-width=\"1.4\"/>\n",
          at.x, at.y, node_ - 3.5);
    }
    const double size = std::min(0.78 * node_, 2.6 * node_ / static_cast<double>(a_.names[s].size()));
    return out + label(at, size, a_.names[s], end ? "#fdfcfa" : kInk, "middle", "bold");
  }

  const Automaton& a_;
  int n_;
  double node_, radius_;
  Point centre_{};
  std::vector<double> angle_;
};

// Row = source, column = destination, states in id order; a band and a grid line for each symbol. The strip on the
// right holds the edges to '#'. Automata of more states than pixels share cells.
class AdjacencyPicture {
 public:
  explicit AdjacencyPicture(const Automaton& a) : a_(a), rows_(a.states() - 1), cells_(std::min(rows_, 1000)) {
    cell_ = kSide / cells_;
    for (const int32_t s : states_by_id(a)) {
      if (s == a.end) continue;
      if (bands_.empty() || a.symbol[s] != bands_.back().symbol) bands_.push_back({a.symbol[s], row(s), row(s)});
      bands_.back().last = row(s) + 1;
    }
  }

  std::string draw() const {
    std::string out = head(kStrip + kStripWidth + 40, kTop + kSide + 62, a_);
    out += formatted("<path d=\"{}\" fill=\"#ffffff\"/>\n", frames());
    out += grid() + dots() + start_marks();
    out += formatted("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1\"/>\n", frames(), kInk);
    out += label({kLeft + kSide / 2, 18}, 13, "to state, ordered by symbol", kInk);
    out += label({kStrip + kStripWidth / 2, kTop - 15}, 10.5, "#", kInk, "middle", "bold");
    out += formatted("<g transform=\"rotate(-90 16 {0:.1f})\">{1}</g>\n", kTop + kSide / 2,
                     label({16, kTop + kSide / 2}, 13, "from state", kInk));
    out += label({kStrip + kStripWidth + 26, kTop + kSide + 20}, 12, "◀ start state", kInk, "end");
    return out + label({kLeft, kTop + kSide + 20}, 12.5, summary(a_), "#6b6f7b", "start") + "</svg>\n";
  }

 private:
  static constexpr double kLeft = 66, kTop = 56, kSide = 800, kStrip = kLeft + kSide + 8, kStripWidth = 12;
  struct Band {
    int symbol, first, last;  // rows [first, last)
  };
  int row(int state) const { return a_.id[state] - 1; }
  int cell(int state) const { return static_cast<int>(int64_t{row(state)} * cells_ / rows_); }
  double at(int row_number) const { return kSide * row_number / rows_; }

  static std::string frames() {
    return formatted("M{0} {1}h{2}v{2}h-{2}zM{3} {1}h{4}v{2}h-{4}z", kLeft, kTop, kSide, kStrip, kStripWidth);
  }

  std::string grid() const {
    std::string lines, out;
    double labelled = -100;
    for (const Band& band : bands_) {
      const double from = at(band.first), to = at(band.last), middle = (from + to) / 2;
      const std::string paint = colour(a_, band.symbol, 0.70);
      out += formatted(
          "<rect x=\"{0:.2f}\" y=\"{1}\" width=\"{2:.2f}\" height=\"5\" fill=\"{3}\"/>\n"
          "<rect x=\"{4}\" y=\"{5:.2f}\" width=\"5\" height=\"{2:.2f}\" fill=\"{3}\"/>\n",
          kLeft + from, kTop - 7, to - from, paint, kLeft - 7, kTop + from);
      if (middle - labelled >= 11) {
        labelled = middle;
        out += label({kLeft + middle, kTop - 15}, 10.5, symbol_name(band.symbol), kInk);
        out += label({kLeft - 11, kTop + middle}, 10.5, symbol_name(band.symbol), kInk, "end");
      }
      if (band.first > 0 && bands_.size() <= 200) {
        lines += formatted("M{0:.2f} {1}v{2}M{3} {4:.2f}h{2}", kLeft + from, kTop, kSide, kLeft, kTop + from);
      }
    }
    return formatted("<path d=\"{}\" stroke=\"#e4e1da\" stroke-width=\"0.6\" fill=\"none\"/>\n", lines) + out;
  }

  std::string dots() const {
    std::vector<std::string> paths(a_.vocab);
    std::unordered_set<int64_t> drawn;
    const double side = std::max(cell_, 1.3);
    for (int s = 0; s < a_.states(); ++s) {
      for (int e = a_.row[s]; e < a_.row[s + 1]; ++e) {
        const bool ends = a_.dst[e] == a_.end;
        const int x = ends ? cells_ : cell(a_.dst[e]), y = cell(s);
        if (!drawn.insert(int64_t{y} * (cells_ + 1) + x).second) continue;
        paths[a_.symbol[s]] += formatted("M{:.1f} {:.1f}h{:.2f}v{:.2f}h-{:.2f}z", ends ? kStrip : kLeft + x * cell_,
                                         kTop + y * cell_, ends ? kStripWidth : side, side, ends ? kStripWidth : side);
      }
    }
    std::string out;
    for (int c = 0; c < a_.vocab; ++c) {
      if (!paths[c].empty()) out += formatted("<path d=\"{}\" fill=\"{}\"/>\n", paths[c], colour(a_, c, 0.52, 0.15));
    }
    return out;
  }

  std::string start_marks() const {
    std::string out;
    for (const int s : a_.start) {
      out += formatted("<path d=\"M{0:.1f} {1:.1f}l11 -5v10z\" fill=\"{2}\"><title>start state {3}</title></path>\n",
                       kStrip + kStripWidth + 5, kTop + at(row(s)) + cell_ / 2, kInk, xml_escaped(a_.names[s]));
    }
    return out;
  }

  const Automaton& a_;
  int rows_, cells_;
  double cell_ = 1;
  std::vector<Band> bands_;
};

std::string dot_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string to_dot(const Automaton& a) {
  std::string out =
      "digraph automaton {\n"
      "  graph [rankdir=LR, bgcolor=\"#fdfcfa\", fontname=\"Helvetica\"];\n"
      "  node [shape=circle, style=filled, fontname=\"Helvetica-Bold\", penwidth=1.6];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.7];\n";
  for (int s = 0; s < a.states(); ++s) {
    const bool end = s == a.end;
    out +=
        formatted("  {} [label={}, fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\"{}];\n", s, dot_quoted(a.names[s]),
                  end ? kInk : colour(a, a.symbol[s], 0.92, 0.06), end ? kInk : colour(a, a.symbol[s], 0.55),
                  end ? "#fdfcfa" : kInk, end ? ", shape=doublecircle" : "");
  }
  for (const int s : a.start) {
    out += formatted("  start{0} [shape=point, color=\"{1}\"];\n  start{0} -> {0} [color=\"{1}\"];\n", s, kInk);
  }
  for (int s = 0; s < a.states(); ++s) {
    for (int e = a.row[s]; e < a.row[s + 1]; ++e) {
      out += formatted("  {} -> {} [color=\"{}\", label=\"{}\"];\n", s, a.dst[e], colour(a, a.symbol[s], 0.60),
                       fixed(a.prob[e], 2));
    }
  }
  return out + "}\n";
}

std::string to_svg(const Automaton& a) {
  return a.states() <= kMaxDrawnInFull ? CirclePicture(a).draw() : AdjacencyPicture(a).draw();
}

}  // namespace sb
