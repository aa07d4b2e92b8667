// An HTTP server for one page: GET and HEAD, one request per connection, all of them in one thread. A client that is
// slow or silent costs an open file, nothing else.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "page/http_request.h"

namespace sb {

struct HttpAnswer {
  int status = 200;
  std::string type, body, tag;  // the tag is its ETag, "" for none
};

class HttpServer {
 public:
  // Listens on an address or a name of this machine; port 0: any free port. is_open() is false on failure.
  HttpServer(const std::string& host, int port);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  bool is_open() const { return listener_ >= 0; }
  int port() const { return port_; }

  // Serves requests until stop() returns true; polls it several times a second. Requests with a foreign Host never
  // reach `answer`, since another site could point its own name to this address (DNS rebinding).
  void serve(const std::function<HttpAnswer(const HttpRequest&)>& answer, const std::function<bool()>& stop);

 private:
  bool is_own_name(const std::string& name) const;

  int listener_ = -1;
  int port_ = 0;
  bool any_address_ = false;          // bound to 0.0.0.0 or ::
  std::vector<std::string> names_{};  // accepted in Host
};

}  // namespace sb
