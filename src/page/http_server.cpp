#include "page/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include "base/descriptor.h"
#include "base/signal_blocker.h"

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxHead = 16384;                 // bytes of a request head
constexpr size_t kMaxClients = 64;                 // at a time; others wait
constexpr std::chrono::seconds kMaxRequest{10};    // from connecting to the complete request
constexpr int kMaxSilence = 30;                    // seconds without reading any byte of the answer
constexpr std::chrono::seconds kMaxFarewell{2};    // for the client to close after its answer
constexpr std::chrono::milliseconds kLookAt{100};  // interval between calls of stop()

const char* reason(int status) {
  static const std::map<int, const char*> reasons = {{200, "OK"},
                                                     {304, "Not Modified"},
                                                     {400, "Bad Request"},
                                                     {403, "Forbidden"},
                                                     {404, "Not Found"},
                                                     {405, "Method Not Allowed"},
                                                     {431, "Request Header Fields Too Large"}};
  const auto found = reasons.find(status);
  return found != reasons.end() ? found->second : "Internal Server Error";
}

std::string answer_bytes(const HttpAnswer& answer, bool with_body) {
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " " + reason(answer.status) +
                    "\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                    "X-Frame-Options: DENY\r\nConnection: close\r\n";
  if (!answer.tag.empty()) out += "ETag: " + answer.tag + "\r\n";
  if (answer.status == 405) out += "Allow: GET, HEAD\r\n";
  if (answer.status != 304) {
    out += "Content-Type: " + answer.type + "\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n";
  }
  out += "\r\n";
  if (with_body && answer.status != 304) out += answer.body;
  return out;
}

HttpAnswer refusal(int status) {
  return {status, "text/plain; charset=utf-8", std::string(reason(status)) + "\n", ""};
}

// Receives some bytes; false if the client is gone or it is too late.
bool receive(int fd, std::string& in, Clock::time_point until) {
  char bytes[4096];
  const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
  if (got > 0) in.append(bytes, static_cast<size_t>(got));
  return (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) && Clock::now() < until;
}

// Reads the request, writes the answer, and waits for the client to close.
void talk(const Descriptor& client, const std::function<std::string(std::string_view head)>& answer) {
  const timeval look{1, 0}, silence{kMaxSilence, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
  ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  const auto until = Clock::now() + kMaxRequest;
  std::string in, rest;
  size_t end = 0;
  while ((end = in.find("\r\n\r\n")) == std::string::npos && in.size() <= kMaxHead)
    if (!receive(client.get(), in, until)) return;
  const std::string out =
      in.size() > kMaxHead ? answer_bytes(refusal(431), true) : answer(std::string_view(in).substr(0, end));
  for (size_t sent = 0; sent < out.size();) {
    const ssize_t n = ::send(client.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) sent += static_cast<size_t>(n);
  }
  ::shutdown(client.get(), SHUT_WR);
  const auto closed = Clock::now() + kMaxFarewell;
  while (receive(client.get(), rest, closed)) rest.clear();
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char name[NI_MAXHOST];
  return ::getnameinfo(address, size, name, sizeof name, nullptr, 0, NI_NUMERICHOST) == 0 ? name : "";
}

bool is_numeric(const std::string& name) {
  in6_addr address{};
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 || ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

}  // namespace

HttpServer::HttpServer(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  for (const addrinfo* at = found; at != nullptr && listener_ < 0; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    const int yes = 1;
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
      listener_ = fd;
      const std::string address = numeric(reinterpret_cast<sockaddr*>(&bound), size);
      port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                : reinterpret_cast<sockaddr_in&>(bound).sin_port);
      any_address_ = address == "0.0.0.0" || address == "::";
      names_ = {host_name(host), address};
      if (any_address_ || address.starts_with("127.") || address == "::1") names_.emplace_back("localhost");
      char own[256] = {};
      if (any_address_ && ::gethostname(own, sizeof own - 1) == 0) names_.push_back(host_name(own));
    } else if (fd >= 0) {
      ::close(fd);
    }
  }
  ::freeaddrinfo(found);
}

HttpServer::~HttpServer() {
  if (listener_ >= 0) ::close(listener_);
}

bool HttpServer::is_own_name(const std::string& name) const {
  if (name.empty()) return false;
  return std::find(names_.begin(), names_.end(), name) != names_.end() || (any_address_ && is_numeric(name));
}

void HttpServer::serve(const std::function<HttpAnswer(const HttpRequest&)>& answer, const std::function<bool()>& stop) {
  const auto answer_to = [&](std::string_view head) {
    const auto request = read_request(head);
    if (!request) return answer_bytes(refusal(400), true);
    if (!is_own_name(request->host)) return answer_bytes(refusal(403), true);
    if (request->method != "GET" && request->method != "HEAD") return answer_bytes(refusal(405), true);
    return answer_bytes(answer(*request), request->method == "GET");
  };
  struct Client {
    std::atomic<bool> over = false;
    std::jthread thread;
  };
  std::list<Client> clients;
  while (!stop()) {
    clients.remove_if([](const Client& client) { return client.over.load(); });
    pollfd asked{listener_, POLLIN, 0};
    const bool full = clients.size() >= kMaxClients;
    const bool asks = ::poll(&asked, full ? 0 : 1, static_cast<int>(kLookAt.count())) > 0;
    Descriptor fd(asks ? ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC) : -1);
    if (!fd.open()) {
      if (asks) std::this_thread::sleep_for(kLookAt);  // no free descriptor, or the client is gone
      continue;
    }
    const SignalBlocker here;
    Client& client = clients.emplace_back();
    client.thread = std::jthread([&client, &answer_to, fd = std::make_shared<Descriptor>(std::move(fd))] {
      talk(*fd, answer_to);
      client.over = true;
    });
  }
}

}  // namespace sb
