#include "base/json.h"

#include <cmath>

#include "base/number.h"

namespace sb {
namespace {

void append(std::string& out, const Json& value, int levels, int depth) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isfinite(number)) {
      append_shortest(out, number);
    } else {
      out += "null";
    }
    return;
  }
  if (!value.is_structured()) {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const bool object = value.is_object(), own_lines = depth < levels && !value.empty();
  const auto new_line = [&](int at) {
    out += '\n';
    out.append(static_cast<size_t>(at) * 2, ' ');
  };
  out += object ? '{' : '[';
  bool first = true;
  for (auto item = value.begin(); item != value.end(); ++item) {
    if (!first) out += own_lines ? "," : ", ";
    if (own_lines) new_line(depth + 1);
    first = false;
    if (object) out += json_quoted(item.key()) + ": ";
    append(out, *item, levels, depth + 1);
  }
  if (own_lines) new_line(depth);
  out += object ? '}' : ']';
}

}  // namespace

std::string json_line(const Json& value) {
  std::string out;
  append(out, value, 0, 0);
  return out;
}

std::string json_document(const Json& value, int levels) {
  std::string out;
  append(out, value, levels, 0);
  return out + "\n";
}

std::string json_quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sb
