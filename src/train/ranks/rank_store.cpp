#include "train/ranks/rank_store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/format.h"
#include "base/signal_blocker.h"
#include "base/text.h"

namespace sb {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// `fault`: getaddrinfo's error code; 0 on success.
Addresses addresses_of(const std::string& host, int port, int& fault) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  fault = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {fault == 0 ? found : nullptr, [](addrinfo* all) {
            if (all != nullptr) ::freeaddrinfo(all);
          }};
}

bool connects(int socket, const addrinfo& to, int milliseconds) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return true;
  pollfd ready{socket, POLLOUT, 0};
  int fault = 0;
  socklen_t size = sizeof fault;
  return errno == EINPROGRESS && ::poll(&ready, 1, milliseconds) == 1 &&
         ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0;
}

std::string number_of(const sockaddr& address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  const bool told = ::getnameinfo(&address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
  return told ? text : "";
}

// Why the port cannot be used; empty if it can. Checked before c10d tries, which prints several lines on failure.
std::string fault_of(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  const bool taken = ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0;
  const int fault = errno;
  ::close(socket);
  if (!taken) return "";
  if (fault != EADDRINUSE) return std::string("which is not allowed: ") + std::strerror(fault);
  return "in use by another process: rank 0 of another run, or a second process with RANK 0";
}

}  // namespace

std::shared_future<void> started(std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  std::shared_future<void> out = task.get_future().share();
  const SignalBlocker here;
  std::thread(std::move(task)).detach();
  return out;
}

bool done_within(double seconds, std::function<void()> call) {
  const auto done = started(std::move(call));
  if (done.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) return false;
  done.get();
  return true;
}

RankStore connected(const RankPlace& place, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(place.timeout_seconds * 1000));
  if (const std::string fault = serves ? fault_of(place.port) : ""; !fault.empty())
    throw bad_input("MASTER_PORT", formatted("expected a free port for rank 0, got {}, {}", place.port, fault));
  auto out = std::make_shared<RankStore>();
  const auto made = [out, address = place.address, options] {
    *out = c10::make_intrusive<c10d::TCPStore>(address, options);
  };
  const std::string at = formatted("{}:{}", place.address, place.port);
  try {
    if (done_within(place.timeout_seconds, made)) return *out;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    const std::string line = printable(what.substr(0, what.find('\n')), 200);
    throw bad_input(serves ? "MASTER_PORT" : "MASTER_ADDR",
                    formatted("expected {} {}, got: {}", serves ? "a free port," : "rank 0 at", at, line));
  }
  throw bad_input("MASTER_ADDR", formatted("expected rank 0 at {}, got something that does not answer", at));
}

Route route_to(const std::string& host, int port) {
  int fault = 0;
  const Addresses all = addresses_of(host, port, fault);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    Route out;
    if (connects(socket, *each, 1000) && ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0)
      out = {number_of(*reinterpret_cast<const sockaddr*>(&own), size), number_of(*each->ai_addr, each->ai_addrlen)};
    ::close(socket);
    if (!out.here.empty() && !out.there.empty()) return out;
  }
  return {};
}

bool stays_on_machine(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

void check_address_is_here(const RankPlace& place) {
  int fault = 0;
  const Addresses all = addresses_of(place.address, 0, fault);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    const bool here = ::bind(socket, each->ai_addr, each->ai_addrlen) == 0;  // to any port of it
    ::close(socket);
    if (here) return;
  }
  const std::string why =
      fault == 0 ? "which belongs to another machine" : std::string("which is not found: ") + ::gai_strerror(fault);
  throw bad_input("MASTER_ADDR", formatted("expected an address of this machine, on which rank 0 is, got '{}', {}",
                                           place.address, why));
}

void check_address_is_known(const RankPlace& place) {
  int fault = 0;
  const Addresses all = addresses_of(place.address, 0, fault);
  // Temporary failures of name resolution are not errors: the caller retries until the ranks have met.
  if (fault == EAI_NONAME || fault == EAI_FAIL)
    throw bad_input("MASTER_ADDR", formatted("expected the host of rank 0, got '{}', which is not found: {}",
                                             place.address, ::gai_strerror(fault)));
}

void put(c10d::TCPStore& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

void put_first(c10d::TCPStore& store, const std::string& key, const std::string& text) {
  store.compareSet(key, {}, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string got(c10d::TCPStore& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

std::string numbered(const char* what, int rank) {
  return formatted("{}/{}", what, rank);
}

std::string names(const std::vector<int>& ranks, int size) {
  return formatted("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", joined(ranks, ", "), size);
}

}  // namespace sb
