// The forest plot: comparisons with their intervals.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number.h"
#include "findings/figures.h"
#include "findings/svg.h"
#include "findings/svg_axis.h"

namespace sb {
namespace {

constexpr double margin = 16, gap = 18, least_width = 840, least_plot = 300, row_padding = 10;
constexpr double widest_label = 280, widest_verdict = 150, widest_tick = 50;

// "+2.3", with a minus sign as long as the plus.
std::string points_text(double share) {
  const std::string number = fixed(std::abs(share) * 100, 1);
  return (number == "0.0" ? "" : share < 0 ? "−" : "+") + number;
}

std::string interval_text(const Difference& row) {
  return row.interval ? formatted("[{}, {}]", points_text(row.interval->low), points_text(row.interval->high)) : "–";
}

std::string sentence(const Difference& row) {
  std::string out = (row.heading.empty() ? "" : row.heading + ", ") + row.label + ": " + points_text(row.effect);
  out += row.interval
             ? formatted(", 95 % interval {} to {}", points_text(row.interval->low), points_text(row.interval->high))
             : ", no interval";
  if (row.paper) out += ", paper " + points_text(*row.paper);
  if (row.paper && row.paper_spread > 0) out += formatted(" ± {}", fixed(row.paper_spread * 100, 1));
  return out + (row.verdict.empty() ? "." : ", " + row.verdict + ".");
}

// Removes values that are not finite.
Difference known(Difference row) {
  if (row.interval && !(std::isfinite(row.interval->low) && std::isfinite(row.interval->high))) row.interval.reset();
  if (row.paper && !std::isfinite(*row.paper)) row.paper.reset();
  if (!std::isfinite(row.paper_spread)) row.paper_spread = 0;
  return row;
}

// A comparison with its wrapped texts and their positions.
struct Row {
  Difference data;
  std::vector<std::string> heading, label, verdict;
  double top = 0, middle = 0;  // of the marks
};

class Forest {
 public:
  explicit Forest(const DifferencesFigure& figure) : figure_(figure) {
    for (const auto& row : figure.rows)
      if (std::isfinite(row.effect)) rows_.push_back({known(row), {}, {}, {}});
  }

  std::string draw() {
    if (rows_.empty()) return "";
    place_columns();
    place_title();
    place_rows();
    scale();
    draw_frame();
    for (const auto& row : rows_) draw_row(row);
    std::string description = "Differences in accuracy, in points.";
    for (const auto& row : rows_) description += " " + sentence(row.data);
    return svg_.document(width_, bottom_ + 2.4 * svg_line + margin / 2, figure_.title, description);
  }

 private:
  void place_columns() {
    double label = 0, verdict = text_width("verdict"), effect = 0, interval = text_width("95 % interval");
    for (const auto& row : rows_) {
      label = std::max({label, text_width(row.data.label), text_width(row.data.heading, true)});
      verdict = std::max(verdict, text_width(row.data.verdict));
      effect = std::max(effect, text_width(points_text(row.data.effect)));
      interval = std::max(interval, text_width(interval_text(row.data)));
    }
    label = std::min(label, widest_label);
    verdict = std::min(verdict, widest_verdict);
    effect = std::max(effect, text_width("points"));
    const std::string* heading = nullptr;
    for (auto& row : rows_) {
      if (!row.data.heading.empty() && (!heading || *heading != row.data.heading))
        row.heading = wrapped(row.data.heading, label, true);
      heading = &row.data.heading;
      row.label = wrapped(row.data.label, label);
      row.verdict = wrapped(row.data.verdict, verdict);
    }
    const double beside = margin + label + gap + gap + effect + gap / 2 + interval + gap + verdict + margin;
    width_ = std::ceil(std::max(least_width, beside + least_plot));
    axis_.from = margin + label + gap;
    axis_.to = width_ - beside + axis_.from;
    effect_end_ = axis_.to + gap + effect;
    interval_end_ = effect_end_ + gap / 2 + interval;
    verdict_ = interval_end_ + gap;
  }

  void place_title() {
    double y = margin + svg_line / 2;
    for (const auto& line : wrapped(figure_.title, width_ - 2 * margin, true)) {
      svg_.text(margin, y, line, "bold");
      y += svg_line;
    }
    y += 6;
    double x = margin;
    const auto entry = [&](const std::string& text, auto sign) {
      const double length = 34 + text_width(text);
      if (x > margin && x + length > width_ - margin) {
        x = margin;
        y += svg_line;
      }
      sign(x + 13);
      svg_.text(x + 34, y, text, "muted");
      x += length + gap;
    };
    entry("difference and 95 % interval", [&](double at) {
      svg_.line(at - 13, y, at + 13, y, "effect bar");
      svg_.marker(0, at, y, "effect");
    });
    const auto any = [&](auto holds) {
      return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.data.paper && holds(row.data); });
    };
    if (any([](const Difference&) { return true; })) {
      const bool spread = any([](const Difference& row) { return row.paper_spread > 0; });
      entry(spread ? "the paper's difference and its ±" : "the paper's difference", [&](double at) {
        if (spread) svg_.line(at - 13, y, at + 13, y, "whisker");
        svg_.marker(3, at, y, "outline");
      });
    }
    entry(formatted("within ±{} {}", shortest_points(), shortest_points() == "1" ? "point" : "points"),
          [&](double at) { svg_.rect(at - 13, y - 6, 26, 12, "band"); });
    top_ = y + svg_line + 12;
  }

  std::string shortest_points() const { return svg_number(figure_.delta * 100); }

  void place_rows() {
    double y = top_ + svg_line / 2 + 4;
    for (auto& row : rows_) {
      if (!row.heading.empty()) y += 8;
      row.top = y;
      y += static_cast<double>(row.heading.size()) * svg_line;
      const double lines = static_cast<double>(std::max(row.label.size(), row.verdict.size())) * svg_line;
      row.middle = y + (lines + row_padding) / 2;
      y += lines + row_padding;
    }
    bottom_ = y + 4;
  }

  // Interval ends that would compress all other rows are cut off and marked with an arrow.
  void scale() {
    double low = -1.5 * std::max(figure_.delta, 1e-3), high = -low;
    const auto take = [&](double value) {
      low = std::min(low, value);
      high = std::max(high, value);
    };
    for (const auto& row : rows_) {
      take(row.data.effect);
      if (row.data.paper) take(*row.data.paper);
    }
    const double least = low - .6 * (high - low), most = high + .6 * (high - low);
    const auto take_near = [&](double end) {
      if (end >= least && end <= most) take(end);
    };
    for (const auto& row : rows_) {
      if (row.data.interval) take_near(row.data.interval->low);
      if (row.data.interval) take_near(row.data.interval->high);
      if (row.data.paper) take_near(*row.data.paper - row.data.paper_spread);
      if (row.data.paper) take_near(*row.data.paper + row.data.paper_spread);
    }
    const double room = .04 * (high - low);
    axis_.low = (low - room) * 100;
    axis_.high = (high + room) * 100;
  }

  double x_of(double share) const { return axis_.at(share * 100); }
  bool inside(double x) const { return x >= axis_.from && x <= axis_.to; }

  void draw_frame() {
    const double top = top_ + svg_line / 2;
    svg_.rect(x_of(-figure_.delta), top, x_of(figure_.delta) - x_of(-figure_.delta), bottom_ - top, "band");
    const Ticks ticks = ticks_over(axis_.low, axis_.high, static_cast<int>((axis_.to - axis_.from) / widest_tick));
    for (const double tick : ticks.values) {
      const double x = axis_.at(tick);
      if (!inside(x)) continue;
      svg_.line(x, top, x, bottom_, tick == 0 ? "axis" : "grid");
      const std::string number = fixed(std::abs(tick), ticks.decimals);
      svg_.text(x, bottom_ + svg_line / 2 + 2, tick == 0 ? "0" : (tick < 0 ? "−" : "+") + number, "muted",
                Svg::Anchor::middle);
    }
    svg_.line(axis_.from, bottom_, axis_.to, bottom_, "axis");
    svg_.text((axis_.from + axis_.to) / 2, bottom_ + 1.6 * svg_line, "difference in accuracy, points", "muted",
              Svg::Anchor::middle);
    svg_.text(effect_end_, top_ - 4, "points", "muted", Svg::Anchor::end);
    svg_.text(interval_end_, top_ - 4, "95 % interval", "muted", Svg::Anchor::end);
    svg_.text(verdict_, top_ - 4, "verdict", "muted");
  }

  void lines_at(double x, double middle, const std::vector<std::string>& lines, const char* classes) {
    double y = middle - (static_cast<double>(lines.size()) - 1) * svg_line / 2;
    for (const auto& line : lines) {
      svg_.text(x, y, line, classes);
      y += svg_line;
    }
  }

  void draw_row(const Row& row) {
    const Difference& d = row.data;
    if (!row.heading.empty()) {
      if (row.top > rows_.front().top) svg_.line(margin, row.top - 4, width_ - margin, row.top - 4, "grid");
      lines_at(margin, row.top + static_cast<double>(row.heading.size()) * svg_line / 2, row.heading, "bold");
    }
    const char* text = d.decided ? "ink" : "muted";
    lines_at(margin, row.middle, row.label, "ink");
    svg_.text(effect_end_, row.middle, points_text(d.effect), text, Svg::Anchor::end);
    svg_.text(interval_end_, row.middle, interval_text(d), text, Svg::Anchor::end);
    lines_at(verdict_, row.middle, row.verdict, text);
    if (d.paper) {
      const double y = row.middle + 4.5;
      if (d.paper_spread > 0)
        svg_.line(std::max(axis_.from, x_of(*d.paper - d.paper_spread)), y,
                  std::min(axis_.to, x_of(*d.paper + d.paper_spread)), y, "whisker");
      svg_.marker(3, x_of(*d.paper), y, "outline");
    }
    const double y = row.middle - (d.paper ? 3.5 : 0);
    const std::string colour = d.decided ? "effect" : "quiet";
    if (d.interval) {
      const double low = x_of(d.interval->low), high = x_of(d.interval->high);
      svg_.line(std::max(low, axis_.from), y, std::min(high, axis_.to), y, colour + " bar");
      if (low < axis_.from)
        svg_.polygon({{axis_.from - 1, y}, {axis_.from + 7, y - 4}, {axis_.from + 7, y + 4}}, colour + " mark");
      if (high > axis_.to)
        svg_.polygon({{axis_.to + 1, y}, {axis_.to - 7, y - 4}, {axis_.to - 7, y + 4}}, colour + " mark");
    }
    svg_.marker(0, x_of(d.effect), y, colour);
  }

  const DifferencesFigure& figure_;
  std::vector<Row> rows_;
  Svg svg_;
  SvgAxis axis_;  // of points
  double width_ = 0, effect_end_ = 0, interval_end_ = 0, verdict_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

std::string differences_svg(const DifferencesFigure& figure) {
  return Forest(figure).draw();
}

}  // namespace sb
