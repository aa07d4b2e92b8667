#include "store/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t longest_line = size_t{1} << 16;
constexpr size_t most_numbers = 1000;

// Accepts one flat object of numbers; rejects everything else at once.
class RowReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RowReader(const std::string& place) : place_(place) {}
  MetricRow row;
  bool has_update = false, has_phase = false;

  [[noreturn]] void refuse(const std::string& what) const { throw bad_input("metrics", what + ", " + place_); }

  bool null() override { return number(std::numeric_limits<double>::quiet_NaN()); }
  bool boolean(bool) override { wrong(); }
  bool binary(binary_t&) override { wrong(); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (key_ != "update" || !open_) return number(static_cast<double>(value));
    if (has_update || value > uint64_t{1} << 53) wrong();
    row.update = static_cast<int64_t>(value);
    return has_update = true;
  }
  bool string(string_t& value) override {
    if (key_ != "phase" || !open_ || has_phase) wrong();
    row.phase = value;
    return has_phase = true;
  }
  bool start_object(std::size_t) override {
    if (open_) wrong();
    return open_ = true;
  }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { wrong(); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    refuse("expected one JSON object");
  }

 private:
  [[noreturn]] void wrong() const {
    refuse(open_ ? "'" + printable(key_) + "' is not a number or occurs twice" : "expected one JSON object");
  }
  bool number(double value) {
    if (!open_ || key_ == "update" || key_ == "phase") wrong();
    if (row.values.size() == most_numbers) refuse("more than " + std::to_string(most_numbers) + " numbers");
    row.values.emplace_back(key_, value);
    return true;
  }

  const std::string& place_;
  std::string key_;
  bool open_ = false;
};

MetricRow parse_row(std::string_view line, const std::string& place) {
  RowReader reader(place);
  if (line.size() > longest_line) reader.refuse("expected at most " + std::to_string(longest_line) + " bytes per line");
  nlohmann::json::sax_parse(line.begin(), line.end(), &reader);
  if (!reader.has_update || !reader.has_phase) reader.refuse("expected one JSON object with an update and a phase");
  return std::move(reader.row);
}

}  // namespace

std::string metric_line(const MetricRow& row) {
  Json json = {{"update", row.update}, {"phase", row.phase}};
  for (const auto& [name, value] : row.values) json[name] = value;
  return json_line(json) + "\n";
}

std::string metric_lines(const std::vector<MetricRow>& rows) {
  std::string text;
  for (const auto& row : rows) text += metric_line(row);
  return text;
}

std::vector<MetricRow> parse_metrics(std::string_view text, const std::string& file) {
  std::vector<MetricRow> rows;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string place = printable(file, 200) + ":" + std::to_string(line) + ":1";
    if (end == std::string_view::npos) throw bad_input("metrics", "last line is incomplete, " + place);
    rows.push_back(parse_row(text.substr(0, end), place));
    text.remove_prefix(end + 1);
  }
  return rows;
}

}  // namespace sb
