#include "config/toml_tree.h"

// toml++ 3.3 asserts (with NDEBUG: assumes) that a key follows '[' and ','. Without the assertion it reports a proper
// error.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t most_dots = 32;

Place place_of(const toml::source_region& region, const std::string& file) {
  return {file, region.begin.line, region.begin.column};
}

// Rejects input that toml++ 3.3 handles unsafely: many dots in a key (nested tables, destroyed recursively), and
// non-ASCII characters outside of strings and comments (undefined behaviour in its white-space test). It follows keys,
// values and brackets, since toml++ reads a quote inside a word, as in `a = -b["c"`, as part of the word.
class Screen {
 public:
  Screen(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void check() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '"' || c == '\'') {
        if (!may_start_) refuse("quote inside a word");
        skip_string(c);
        may_start_ = false;
      } else {
        check_plain(c);
        if (c != ' ' && c != '\t' && c != '\r') follow(c);
        ++at_;
      }
    }
  }

 private:
  void check_plain(char c) {
    if (static_cast<unsigned char>(c) >= 0x80) refuse("non-ASCII character outside of a string");
    if (c == '\n' || c == ',' || c == '=' || c == '[') dots_ = 0;
    if (c == '.' && ++dots_ > most_dots) refuse("name of more than " + std::to_string(most_dots) + " parts");
  }

  // Updates may_start_ and in_key_ after a character outside of strings and comments.
  void follow(char c) {
    const bool starts = may_start_;
    may_start_ = false;
    if (c == '\n') {
      if (open_.empty()) in_key_ = true;
      may_start_ = open_.empty() || starts;
    } else if (c == '=') {
      may_start_ = in_key_;
      in_key_ = false;
    } else if (c == '.') {
      may_start_ = in_key_;
    } else if (c == ',' && !open_.empty()) {
      in_key_ = open_.back() == '{';
      may_start_ = true;
    } else if ((c == '[' || c == '{') && starts) {
      may_start_ = !in_key_ || c == '[';  // a header of a table has a key in brackets
      if (in_key_) return;
      open_ += c;
      in_key_ = c == '{';
    } else if ((c == ']' && open_.ends_with('[')) || (c == '}' && open_.ends_with('{'))) {
      open_.pop_back();
      in_key_ = false;
    }
  }

  // A single-line string ends at the end of the line, even if it is not closed.
  void skip_string(char quote) {
    const bool lines = starts_with(std::string(3, quote));
    const std::string end(lines ? 3 : 1, quote);
    at_ += end.size();
    while (at_ < text_.size() && !starts_with(end)) {
      if (!lines && text_[at_] == '\n') return;
      if (quote == '"' && text_[at_] == '\\') skip_escape();
      ++at_;
    }
    at_ += end.size();
    for (int extra = 0; lines && extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra) ++at_;
  }

  void skip_escape() {
    ++at_;
    if (at_ >= text_.size()) return;
    if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) refuse("'\\' at the end of a line");
    if (static_cast<unsigned char>(text_[at_]) >= 0x80) refuse("'\\' before a non-ASCII character");
  }

  bool starts_with(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  [[noreturn]] void refuse(const std::string& what) const {
    const size_t at = std::min(at_, text_.size() - 1);
    const std::string_view before = text_.substr(0, at);
    const auto line = static_cast<unsigned>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t start = before.rfind('\n') + 1;
    throw bad_input("config", what + ", " + Place{file_, line, static_cast<unsigned>(at - start) + 1}.text());
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  size_t dots_ = 0;
  std::string open_;       // brackets of lists and inline tables
  bool in_key_ = true;     // in a key, not in a value
  bool may_start_ = true;  // a string may start here
};

TomlValue convert(const toml::node& node, const std::string& file) {
  TomlValue out;
  out.place = place_of(node.source(), file);
  if (const auto* table = node.as_table()) {
    TomlValue::Table members;
    for (const auto& [key, value] : *table)
      members.push_back({std::string(key.str()), place_of(key.source(), file), convert(value, file)});
    std::stable_sort(members.begin(), members.end(), [](const TomlMember& a, const TomlMember& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
    out.content = std::move(members);
  } else if (const auto* array = node.as_array()) {
    TomlValue::List items;
    for (const auto& item : *array) items.push_back(convert(item, file));
    out.content = std::move(items);
  } else if (const auto* text = node.as_string()) {
    out.content = text->get();
  } else if (const auto* whole = node.as_integer()) {
    out.content = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    out.content = real->get();
  } else if (const auto* truth = node.as_boolean()) {
    out.content = truth->get();
  } else {
    throw bad_input("config",
                    "expected a number, text, true, false or a list, got a date or time, " + out.place.text());
  }
  return out;
}

struct KindName {
  std::string_view operator()(bool) const { return "a boolean"; }
  std::string_view operator()(int64_t) const { return "an integer"; }
  std::string_view operator()(double) const { return "a real number"; }
  std::string_view operator()(const std::string&) const { return "text"; }
  std::string_view operator()(const TomlValue::List&) const { return "a list"; }
  std::string_view operator()(const TomlValue::Table&) const { return "a table"; }
};

struct Shown {
  std::string operator()(bool truth) const { return truth ? "true" : "false"; }
  std::string operator()(int64_t whole) const { return std::to_string(whole); }
  std::string operator()(double real) const { return shortest(real); }
  std::string operator()(const std::string& text) const {
    return std::string("'").append(printable(text, 40)).append("'");
  }
  std::string operator()(const TomlValue::List&) const { return "a list"; }
  std::string operator()(const TomlValue::Table&) const { return "a table"; }
};

}  // namespace

std::string Place::text() const {
  const std::string name = printable(file, 200);
  return line == 0 ? name : name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string_view kind_name(const TomlValue& value) {
  return std::visit(KindName{}, value.content);
}
std::string shown(const TomlValue& value) {
  return std::visit(Shown{}, value.content);
}
std::string toml_quoted(std::string_view text) {
  return json_quoted(text);
}

void move_place(TomlValue& value, const Place& place) {
  value.place = place;
  if (auto* list = std::get_if<TomlValue::List>(&value.content))
    for (auto& item : *list) move_place(item, place);
  if (auto* table = std::get_if<TomlValue::Table>(&value.content))
    for (auto& member : *table) {
      member.place = place;
      move_place(member.value, place);
    }
}

std::string read_text(const std::string& path, size_t limit, const std::string& where, const Place& from) {
  if (path.find('\0') != std::string::npos) throw bad_input(where, "file name with a NUL, " + from.text());
  try {
    const bool data = where == "grammar.automaton" || where.starts_with("task.");
    return data ? read_file(path, limit) : read_file_or_pipe(path, limit);
  } catch (const Error& error) {
    const std::string_view line = error.what();
    const std::string place = from.text() == path ? "" : ", " + from.text();
    throw bad_input(where, printable(line.substr(line.find("] ") + 2), 300) + place);
  }
}

TomlValue parse_toml(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Screen(text, file).check();
  try {
    return convert(toml::parse(text), file);
  } catch (const toml::parse_error& error) {
    throw bad_input("config", printable(error.description(), 200) + ", " + place_of(error.source(), file).text());
  }
}

}  // namespace sb
