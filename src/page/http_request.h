// The head of an HTTP request, as far as a server of one page needs it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

struct HttpRequest {
  std::string method, path;  // the path without its query
  std::string host;          // in lower case, without the port
  std::string if_none_match;
};

// `head` ends before the empty line. nullopt if it is no HTTP/1 request with exactly one Host, or has control
// characters.
std::optional<HttpRequest> read_request(std::string_view head);

// "localhost:80", "[::1]:80", "::1": the part before the port, in lower case and without brackets; "" for anything
// else.
std::string host_name(std::string_view host);

}  // namespace sb
