// A figure: its numbers as a table, and a Vega-Lite specification that draws them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file_system.h"
#include "base/json.h"

namespace sb {

// A table value. Numbers are rounded to six decimals on construction, so chart, table, CSV and JSON show the same
// digits.
class FigureValue {
 public:
  FigureValue() = default;  // no value
  FigureValue(std::string text) : value_(std::move(text)) {}
  FigureValue(const char* text) : value_(std::string(text)) {}
  FigureValue(double number);  // no value if not finite
  FigureValue(int64_t number) : value_(number) {}
  FigureValue(int number) : value_(int64_t{number}) {}
  FigureValue(size_t number) : value_(static_cast<int64_t>(number)) {}
  template <class Number>
  FigureValue(const std::optional<Number>& number) {
    if (number) *this = FigureValue(*number);
  }

  Json json() const;
  std::string text() const;  // as in the CSV, unquoted; empty: no value

 private:
  std::variant<std::monostate, std::string, double, int64_t> value_;
};

// Rounds to six decimals; plain notation without trailing zeros, as in JavaScript.
std::string plain_number(double value);

struct FigureColumn {
  std::string key, title, type;  // type: nominal, ordinal or quantitative
};

struct Figure {
  std::string id, section, kind;
  std::string setting;  // what tells it apart from figures of the same kind in the section
  std::string title, caption;
  std::string summary;  // one sentence for readers who cannot see the figure
  std::vector<FigureColumn> columns;
  std::vector<std::vector<FigureValue>> rows;
  Json spec;                        // uses data named "rows"
  int height = 0;                   // pixels
  std::vector<std::string> series;  // ids, in the order of the colour scale
  std::vector<int> palette;         // their colours
  std::vector<std::string> runs;    // keys
};

std::string figure_csv(const Figure& figure);  // RFC 4180 with line feeds; the keys, then the rows
// The specification with its data inside: opens in the Vega editor and in Altair.
Json standalone_spec(const Figure& figure);

// Writes a list of names, then ID.vl.json and ID.csv of each figure. A link of such a name is replaced, not followed.
// Removes files of an earlier list that are not written this time, and returns their number.
size_t write_figures(const std::string& folder, const std::vector<Figure>& figures,
                     FileSystem& files = real_file_system());

}  // namespace sb
