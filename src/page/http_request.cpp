#include "page/http_request.h"

#include <algorithm>

#include "base/text.h"

namespace sb {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Takes the next line off `text`; lines end in CR LF.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 2, text.size()));
  return line;
}

}  // namespace

std::string host_name(std::string_view host) {
  // Whether this is a port, ":80", or nothing.
  const auto is_port = [](std::string_view rest) {
    return rest.empty() || (rest.front() == ':' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
  };
  const size_t colon = host.find(':'), bracket = host.find(']');
  std::string_view name = host, rest;
  if (host.starts_with('[')) {
    if (bracket == std::string_view::npos) return "";
    name = host.substr(1, bracket - 1);
    rest = host.substr(bracket + 1);
  } else if (colon != std::string_view::npos && colon == host.rfind(':')) {
    name = host.substr(0, colon);
    rest = host.substr(colon);
  }
  return is_port(rest) ? lower_case(name) : "";
}

std::optional<HttpRequest> read_request(std::string_view head) {
  for (size_t i = 0; i < head.size(); ++i) {
    if (head.substr(i, 2) == "\r\n")
      ++i;
    else if ((static_cast<unsigned char>(head[i]) < ' ' && head[i] != '\t') || head[i] == '\x7f')
      return std::nullopt;
  }
  const std::string_view first = next_line(head);
  const size_t after_method = first.find(' '), before_version = first.rfind(' ');
  if (after_method == std::string_view::npos || before_version == after_method) return std::nullopt;
  if (!first.substr(before_version + 1).starts_with("HTTP/1.")) return std::nullopt;
  HttpRequest out;
  out.method = first.substr(0, after_method);
  const std::string_view target = first.substr(after_method + 1, before_version - after_method - 1);
  out.path = target.substr(0, target.find('?'));
  int hosts = 0;
  while (!head.empty()) {
    const std::string_view line = next_line(head);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (name == "host") {
      ++hosts;
      out.host = host_name(value);
    } else if (name == "if-none-match") {
      out.if_none_match = value;
    }
  }
  if (hosts != 1 || out.method.empty()) return std::nullopt;
  return out;
}

}  // namespace sb
