// Lines by model: learning curves, and accuracy over gap length.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "findings/figures.h"
#include "findings/svg.h"
#include "findings/svg_axis.h"
#include "findings/verdict.h"
#include "report/palette.h"

namespace sb {
namespace {

constexpr double margin = 16, least_width = 760, least_plot_width = 440, least_plot_height = 330;
constexpr double label_room = 44;  // between plot and text: leader, then a sample of the line
constexpr double dodge = 5;        // between bars of neighbouring lines
constexpr int marks = 6;           // on a curve

std::string share_text(double value, int decimals) {
  std::string out = fixed(value, decimals);
  return out.starts_with("0.") ? out.substr(1) : out;
}

// Whole numbers without decimals.
std::string tick_text(double value, int decimals) {
  return value == std::floor(value) ? fixed(value, 0) : share_text(value, decimals);
}

struct Kind {
  const char *x_title, *y_title;
  bool gaps;  // else curves
};
constexpr Kind curves = {"updates", "accuracy on valid", false},
               gaps = {"gap length, frames", "accuracy on test", true};

struct Series {
  std::string label;
  std::vector<LinePoint> points;
  std::string classes;  // of a line or a marker
  int shape = 0;
  bool filled = true, reference = false, level = false;
  double shift = 0;  // pixels to the right
};

class Chart {
 public:
  Chart(const LinesFigure& figure, const Kind& kind) : figure_(figure), kind_(kind) {
    for (const auto& line : figure.lines)
      if (auto points = drawable(line.points, false); !points.empty()) add_model(line, std::move(points));
    lines_ = series_.size();
    if (lines_ == 0) return;
    for (const auto& line : figure.references)
      if (auto points = drawable(line.points, line.points.size() == 1); !points.empty()) {
        const size_t number = series_.size() - lines_;
        series_.push_back({line.label, std::move(points), formatted("dashed d{}", number % 3), 0, true, true,
                           line.points.size() == 1, 0});
      }
    const bool bars = kind.gaps && std::any_of(series_.begin(), series_.end(), [](const Series& series) {
                        return std::any_of(series.points.begin(), series.points.end(),
                                           [](const LinePoint& point) { return point.interval.has_value(); });
                      });
    for (size_t i = 0; bars && i < lines_; ++i)
      series_[i].shift = (static_cast<double>(i) - static_cast<double>(lines_ - 1) / 2) * dodge;
  }

  std::string draw() {
    if (lines_ == 0) return "";
    place();
    draw_axes();
    for (const auto& series : series_) draw_behind(series);
    for (const auto& series : series_) draw_line(series);
    for (size_t i = 0; i < lines_; ++i) draw_marks(i);
    draw_labels();
    return svg_.document(width_, bottom_ + 2.4 * svg_line + margin / 2, figure_.title, description());
  }

 private:
  // `level`: a reference that is the same at every x.
  std::vector<LinePoint> drawable(const std::vector<LinePoint>& points, bool level) const {
    std::vector<LinePoint> out;
    for (LinePoint point : points) {
      if (!std::isfinite(point.y)) continue;
      if (!level && (!std::isfinite(point.x) || (kind_.gaps && point.x <= 0))) continue;
      if (point.interval && !(std::isfinite(point.interval->low) && std::isfinite(point.interval->high)))
        point.interval.reset();
      if (point.interval) point.interval = within_shares(*point.interval);
      out.push_back(point);
    }
    return out;
  }

  void add_model(const Line& line, std::vector<LinePoint> points) {
    const int colour = line.colour.value_or(model_colour(line.model));
    const int before = used_[colour]++;  // lines of this colour
    series_.push_back({line.label, std::move(points), svg_.series_class(colour) + (before > 0 ? " again" : ""),
                       colour + 5 * (before / 2), before % 2 == 0, false, false, 0});
  }

  void place() {
    double low = 1e300, high = -1e300, first = 1e300, last = -1e300, label = 0;
    for (const auto& series : series_) {
      label = std::max(label, text_width(series.label));
      for (const auto& point : series.points) {
        low = std::min({low, point.y, point.interval ? point.interval->low : point.y});
        high = std::max({high, point.y, point.interval ? point.interval->high : point.y});
        if (series.level) continue;
        first = std::min(first, point.x);
        last = std::max(last, point.x);
        gap_lengths_.insert(point.x);
      }
    }
    y_ticks_ = ticks_over(low, high, 6);
    y_.low = y_ticks_.values.front();
    y_.high = y_ticks_.values.back();
    double tick = 0;
    for (const double value : y_ticks_.values) tick = std::max(tick, text_width(tick_text(value, y_ticks_.decimals)));
    left_ = margin + tick + 8;
    width_ = std::ceil(std::max(least_width, left_ + least_plot_width + label_room + label + margin));
    right_ = width_ - margin - label - label_room;
    draw_title();
    bottom_ = top_ + std::max(least_plot_height, static_cast<double>(series_.size()) * svg_line);
    y_.from = bottom_;
    y_.to = top_;
    const double inset = kind_.gaps ? 16 + static_cast<double>(lines_) * dodge / 2 : 0;
    x_.log = kind_.gaps;
    x_.low = kind_.gaps ? first : std::min(0., first);
    x_.high = last;
    if (x_.high <= x_.low) {
      x_.low = kind_.gaps ? first / 2 : first;
      x_.high = kind_.gaps ? first * 2 : first + 1;
    }
    x_.from = left_ + inset;
    x_.to = right_ - inset;
  }

  void draw_title() {
    double y = margin + svg_line / 2;
    for (const auto& line : wrapped(figure_.title, width_ - 2 * margin, true)) {
      svg_.text(margin, y, line, "bold");
      y += svg_line;
    }
    svg_.text(margin, y + 8, kind_.y_title, "muted");
    top_ = y + 8 + svg_line + 2;
  }

  void draw_axes() {
    for (const double tick : y_ticks_.values) {
      const double y = y_.at(tick);
      svg_.line(left_, y, right_, y, tick == y_.low ? "axis" : "grid");
      svg_.text(left_ - 8, y, tick_text(tick, y_ticks_.decimals), "muted", Svg::Anchor::end);
    }
    double free = 0;  // from here on there is no label of a tick yet
    const Ticks over = ticks_over(x_.low, x_.high, 5);
    for (const double tick : kind_.gaps ? std::vector<double>(gap_lengths_.begin(), gap_lengths_.end()) : over.values) {
      if (tick < x_.low || tick > x_.high) continue;
      const double x = x_.at(tick), half = text_width(number_text(tick)) / 2;
      svg_.line(x, bottom_, x, bottom_ + 5, "axis");
      if (x - half < free) continue;
      svg_.text(x, bottom_ + svg_line * .8, number_text(tick), "muted", Svg::Anchor::middle);
      free = x + half + 4;
    }
    svg_.text((left_ + right_) / 2, bottom_ + 1.9 * svg_line, kind_.x_title, "muted", Svg::Anchor::middle);
  }

  static std::string number_text(double value) {
    return value >= 0 && value < 1e15 && value == std::floor(value) ? grouped(static_cast<uint64_t>(value))
                                                                    : svg_number(value);
  }

  std::pair<double, double> at(const Series& series, const LinePoint& point) const {
    return {x_.at(point.x) + series.shift, y_.at(point.y)};
  }
  std::pair<double, double> end_of(const Series& series) const {
    const LinePoint& last = series.points.back();
    return series.level ? std::pair(right_, y_.at(last.y)) : at(series, last);
  }

  void draw_behind(const Series& series) {
    if (series.reference) return;
    if (kind_.gaps) {
      for (const auto& point : series.points) {
        if (!point.interval) continue;
        const double x = at(series, point).first;
        const double low = y_.at(point.interval->low), high = y_.at(point.interval->high);
        svg_.line(x, low, x, high, series.classes + " bar");
        for (const double y : {low, high}) svg_.line(x - 2.5, y, x + 2.5, y, series.classes + " bar");
      }
      return;
    }
    Svg::Points upper, lower;
    for (const auto& point : series.points) {
      const double x = at(series, point).first;
      const Interval interval = point.interval.value_or(Interval{point.y, point.y});
      upper.emplace_back(x, y_.at(interval.high));
      lower.emplace_back(x, y_.at(interval.low));
    }
    if (upper == lower) return;
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    svg_.polygon(upper, series.classes + " spread");
  }

  void draw_line(const Series& series) {
    if (series.level) {
      const double y = end_of(series).second;
      svg_.line(left_, y, right_, y, series.classes);
      return;
    }
    Svg::Points points;
    for (const auto& point : series.points) points.push_back(at(series, point));
    if (points.size() > 1) svg_.polyline(points, series.reference ? series.classes : series.classes + " line");
  }

  // Every point has a marker over gap lengths; a curve has some, not at the same updates as its neighbours.
  void draw_marks(size_t number) {
    const Series& series = series_[number];
    const auto& points = series.points;
    const auto mark = [&](const LinePoint& point) {
      const auto [x, y] = at(series, point);
      svg_.marker(series.shape, x, y, series.classes, series.filled);
    };
    if (kind_.gaps || points.size() <= marks) {
      for (const auto& point : points) mark(point);
      return;
    }
    for (int k = 0; k < marks; ++k) {
      const double share = (k + (static_cast<double>(number) + .5) / static_cast<double>(lines_)) / marks;
      mark(points[static_cast<size_t>(share * static_cast<double>(points.size()))]);
    }
  }

  void draw_labels() {
    std::vector<double> wanted;
    for (const auto& series : series_) wanted.push_back(end_of(series).second);
    const auto placed = spread_labels(wanted, svg_line, top_, bottom_);
    for (size_t i = 0; i < series_.size(); ++i) {
      const Series& series = series_[i];
      const auto [x, y] = end_of(series);
      const double sample = right_ + label_room - 16;
      svg_.line(x + (kind_.gaps && !series.level ? 7 : 3), y, sample - 13, placed[i], "leader");
      svg_.line(sample - 10, placed[i], sample + 10, placed[i], series.classes + (series.reference ? "" : " line"));
      if (!series.reference) svg_.marker(series.shape, sample, placed[i], series.classes, series.filled);
      svg_.text(right_ + label_room, placed[i], series.label, series.reference ? "muted" : "ink");
    }
  }

  std::string description() const {
    std::string out = formatted("{} by {}.", kind_.gaps ? "Accuracy on test" : "Accuracy on valid", kind_.x_title);
    for (const auto& series : series_) {
      std::vector<std::string> parts;
      for (const auto& point : series.points) {
        if (!kind_.gaps && !series.reference && &point != &series.points.back()) continue;
        std::string part = share_text(point.y, 3);
        if (!series.level) part += (kind_.gaps ? " at " : " after ") + number_text(point.x);
        if (kind_.gaps && point.interval)
          part += formatted(" (95 % interval {} to {})", share_text(point.interval->low, 3),
                            share_text(point.interval->high, 3));
        parts.push_back(part);
      }
      out += formatted(" {}: {}.", series.label, joined(parts, ", "));
    }
    return out;
  }

  const LinesFigure& figure_;
  const Kind& kind_;
  std::vector<Series> series_;  // models first
  size_t lines_ = 0;            // of models
  std::map<int, int> used_;     // lines by colour
  std::set<double> gap_lengths_;
  Ticks y_ticks_;
  Svg svg_;
  SvgAxis x_, y_;
  double width_ = 0, left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

LinePoint mean_point(double x, const std::vector<double>& accuracies) {
  const Estimate accuracy = estimate(accuracies);
  auto interval = accuracy.n < least_grammars ? std::nullopt : accuracy.interval(family_error);
  if (interval) interval = within_shares(*interval);
  return {x, accuracy.mean, interval};
}

std::string curves_svg(const LinesFigure& figure) {
  return Chart(figure, curves).draw();
}

std::string gaps_svg(const LinesFigure& figure) {
  return Chart(figure, gaps).draw();
}

}  // namespace sb
