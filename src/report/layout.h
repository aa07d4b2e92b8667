// Lays out rows as sheets for people.
#pragma once
#include <optional>

#include "report/labels.h"
#include "report/sheet.h"

namespace sb {

// The range of some figures, and their mean.
struct Range {
  std::optional<double> low, high;
  double sum = 0;
  size_t n = 0;

  void add(double value) {
    if (!low || value < *low) low = value;
    if (!high || value > *high) high = value;
    sum += value;
    ++n;
  }
  std::optional<double> mean() const { return n > 0 ? std::optional(sum / static_cast<double>(n)) : std::nullopt; }
  // "0.959" or "0.959–0.999"; `none` if there are no figures.
  template <class Text>
  std::string text(const Text& text, const char* none = "") const {
    if (!low) return none;
    const std::string a = text(*low), b = text(*high);
    return a == b ? a : a + "–" + b;
  }
};

Sheet cell_sheet(const Rows& rows, const Labels& labels);
Sheet run_sheet(const Rows& rows, const Labels& labels);
// Caption below a table: how cells were averaged and chosen. `averaged` describes the figures of a cell, if they are
// not those of a table.
std::vector<std::string> caption_of(const Rows& rows, const Labels& labels, const std::string& averaged = {});
// Above it: runs that are missing or damaged, and results above their ceiling.
std::vector<std::string> head_of(const Rows& rows);
void add_notes(Sheet& sheet, const Rows& rows);

// Selected axes with their value, if all groups chose the same value.
std::vector<std::pair<std::string, std::string>> shared_settings(const Rows& rows);
// "Protocol: corrected.", or each protocol with its models; empty if all runs were trained elsewhere.
std::string protocol_line(const Rows& rows);

std::string amount(double value);  // 159.1 k
bool left_aligned(const LabelAxis& axis);
// Whether the model was trained elsewhere. Its state size is unknown if the result has none; a model of the program
// then has a growing cache.
bool is_external(const Result& result);

}  // namespace sb
