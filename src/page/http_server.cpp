#include "page/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>
#include <thread>

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxHead = 16384;                 // bytes of a request head
constexpr size_t kMaxConnections = 512;            // with more, the oldest unfinished request is dropped
constexpr int kMaxNewOnes = 64;                    // connections accepted before open ones are served again
constexpr size_t kOtherFiles = 64;                 // open files left to the rest of the program
constexpr std::chrono::seconds kMaxRequest{10};    // from connecting to the complete request
constexpr std::chrono::seconds kMaxSilence{30};    // without reading any byte of the answer
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

// One client: first reads the request, then writes the answer, then waits for the client to close.
struct Connection {
  enum class State { reading, writing, closing };
  int fd;
  Clock::time_point until;
  State state = State::reading;
  std::string in, out;
  size_t sent = 0;

  Connection(int open, Clock::time_point now) : fd(open), until(now + kMaxRequest) {}
  ~Connection() { ::close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  short events() const { return state == State::writing ? POLLOUT : POLLIN; }

  void say(const HttpAnswer& answer, bool with_body) {
    out = answer_bytes(answer, with_body);
    state = State::writing;
    until = Clock::now() + kMaxSilence;
  }

  // These functions return false if the connection should be closed.
  bool read(const std::function<void(Connection&, std::string_view head)>& on_request) {
    char bytes[4096];
    const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (state == State::closing) return true;
    const size_t from = in.size() < 3 ? 0 : in.size() - 3;
    in.append(bytes, static_cast<size_t>(got));
    const size_t end = in.find("\r\n\r\n", from);
    if (in.size() > kMaxHead)
      say(refusal(431), true);
    else if (end != std::string::npos)
      on_request(*this, std::string_view(in).substr(0, end));
    return true;
  }

  bool write() {
    const ssize_t n = ::send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent += static_cast<size_t>(n);
    until = Clock::now() + kMaxSilence;
    if (sent == out.size()) {
      ::shutdown(fd, SHUT_WR);
      std::string().swap(out);
      state = State::closing;
      until = Clock::now() + kMaxFarewell;
    }
    return true;
  }
};

size_t most_connections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur > kMaxConnections + kOtherFiles) return kMaxConnections;
  return std::max<size_t>(files.rlim_cur, kOtherFiles + 8) - kOtherFiles;
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
  const auto on_request = [&](Connection& client, std::string_view head) {
    const auto request = read_request(head);
    if (!request)
      client.say(refusal(400), true);
    else if (!is_own_name(request->host))
      client.say(refusal(403), true);
    else if (request->method != "GET" && request->method != "HEAD")
      client.say(refusal(405), true);
    else
      client.say(answer(*request), request->method == "GET");
  };
  const size_t most = most_connections();
  std::list<Connection> clients;  // oldest first
  const auto make_room = [&clients] {
    auto oldest = std::find_if(clients.begin(), clients.end(),
                               [](const Connection& c) { return c.state != Connection::State::writing; });
    if (oldest == clients.end()) oldest = clients.begin();
    if (oldest != clients.end()) clients.erase(oldest);
  };
  const auto take_new_ones = [&] {
    for (int taken = 0; taken < kMaxNewOnes; ++taken) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        if (clients.empty()) {  // no free descriptors; without a pause, poll() would return at once
          std::this_thread::sleep_for(kLookAt);
          return;
        }
        make_room();
        continue;
      }
      if (fd < 0) return;
      if (clients.size() >= most) make_room();
      clients.emplace_back(fd, Clock::now());
    }
  };
  std::vector<pollfd> asked;
  while (!stop()) {
    asked.assign(1, {listener_, POLLIN, 0});
    for (const auto& client : clients) asked.push_back({client.fd, client.events(), 0});
    if (::poll(asked.data(), asked.size(), static_cast<int>(kLookAt.count())) < 0) continue;
    auto client = clients.begin();
    for (size_t i = 1; i < asked.size() && !stop(); ++i) {
      bool stays = client->until > Clock::now();
      if (stays && asked[i].revents != 0)
        stays = client->state == Connection::State::writing ? client->write() : client->read(on_request);
      client = stays ? std::next(client) : clients.erase(client);
    }
    if (asked[0].revents != 0) take_new_ones();
  }
}

}  // namespace sb
