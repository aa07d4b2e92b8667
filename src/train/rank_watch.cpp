#include "train/rank_watch.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Store = c10::intrusive_ptr<c10d::TCPStore>;

constexpr Seconds kRollCall(5);  // for the answers of those who are there
constexpr Seconds kFarewell(3);  // rank 0, which keeps the store, stays so long for the others to read the verdict
constexpr Seconds kTick(0.02);
constexpr const char* kVerdict = "verdict";

double seconds_since(Clock::time_point then) {
  return Seconds(Clock::now() - then).count();
}

std::string numbered(const char* what, int rank) {
  return formatted("{}/{}", what, rank);
}

void put(c10d::TCPStore& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string got(c10d::TCPStore& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

std::string names(const std::vector<int>& ranks, int size) {
  return formatted("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", joined(ranks, ", "), size);
}

// Threads that are started meanwhile leave signals to those that are there.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

bool connects(int socket, const addrinfo& to, int milliseconds) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return true;
  pollfd ready{socket, POLLOUT, 0};
  int fault = 0;
  socklen_t size = sizeof fault;
  return errno == EINPROGRESS && ::poll(&ready, 1, milliseconds) == 1 &&
         ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0;
}

// This machine's address towards a host, once something listens there; empty: nothing does.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = "";
    const bool named =
        connects(socket, *each, 1000) && ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (named) return text;
  }
  return "";
}

bool done_within(Seconds time, std::function<void()> call) {
  const auto done = started(std::move(call));
  if (done.wait_for(time) != std::future_status::ready) return false;
  done.get();
  return true;
}

// Asked before c10d does, which prints several lines where it is not.
bool is_taken(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  const bool taken = ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0;
  ::close(socket);
  return taken;
}

Store connected(const RankPlace& place, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(place.patience * 1000));
  if (serves && is_taken(place.port)) {
    throw bad_input("MASTER_PORT",
                    formatted("expected a free port, got {}, which is taken or not allowed", place.port));
  }
  auto out = std::make_shared<Store>();
  const auto made = [out, address = place.address, options] {
    *out = c10::make_intrusive<c10d::TCPStore>(address, options);
  };
  const std::string at = formatted("{}:{}", place.address, place.port);
  try {
    if (done_within(Seconds(place.patience), made)) return *out;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    const std::string line = printable(what.substr(0, what.find('\n')), 200);
    throw bad_input("MASTER_PORT",
                    formatted("expected {} {}, got: {}", serves ? "a free port," : "rank 0 at", at, line));
  }
  throw bad_input("MASTER_PORT", formatted("expected rank 0 at {}, got something that does not answer", at));
}

}  // namespace

std::shared_future<void> started(std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  std::shared_future<void> out = task.get_future().share();
  const WithoutSignals here;
  std::thread(std::move(task)).detach();
  return out;
}

// What the watching thread and the rank have in common.
struct RankWatch::Shared {
  RankPlace place;
  Store store;                      // the thread's own connection
  std::atomic<int64_t> moved = 0;   // signs of life
  std::atomic<int> waiting = 0;     // for others
  std::atomic<bool> alarm = false;  // a connection broke
  std::atomic<bool> closing = false;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> verdict;
  Clock::time_point heard = Clock::now();  // when the store last answered
  std::string broke;                       // what the alarm is about
  bool ended = false;

  // Of the thread alone.
  int64_t told = -1;
  bool rung = false, answered = false;
  std::vector<int64_t> beats;
  std::vector<Clock::time_point> seen;
  std::optional<Clock::time_point> called;

  void work();
  void round();
  void watch(int rank);
  void count();
  // For all ranks to read, this one too; so many of them will not.
  void pronounce(const std::string& line, size_t lost) { put(*store, kVerdict, formatted("{} {}", lost, line)); }
  void hear();
  void decide(const std::string& line) {
    const std::lock_guard lock(mutex);
    if (!verdict) verdict = line;
    changed.notify_all();
  }
  bool decided() const {
    const std::lock_guard lock(mutex);
    return verdict.has_value();
  }
  std::string silent(int rank) const {
    return formatted("{} gave no sign of life for {} s", names({rank}, place.size), place.patience);
  }
};

void RankWatch::Shared::work() {
  const Seconds beat(std::clamp(place.patience / 10, 0.05, 0.25));
  while (!closing && !decided()) {
    try {
      round();
    } catch (const std::exception&) {
      // A store that is gone is rank 0 that is gone.
      if (!closing) decide(names({0}, place.size) + " is lost");
    }
    std::unique_lock lock(mutex);
    heard = Clock::now();
    changed.wait_for(lock, beat, [&] { return closing || verdict || (alarm && !rung); });
  }
  const std::lock_guard lock(mutex);
  ended = true;
  changed.notify_all();
}

void RankWatch::Shared::round() {
  if (const int64_t now = moved; waiting > 0 || now != told) {
    told = now;
    store->add(numbered("beat", place.rank), 1);
  }
  if (store->check({kVerdict})) return hear();
  if (alarm && !rung) {
    rung = true;
    const std::lock_guard lock(mutex);
    put(*store, "broke", broke);
    store->add("alarm", 1);
  }
  if (store->add("alarm", 0) > 0) {
    if (!answered) store->add(numbered("here", place.rank), 1);
    answered = true;
    if (place.rank == 0) return count();
  }
  if (place.rank != 0) return watch(0);
  for (int rank = 1; rank < place.size; ++rank) watch(rank);
}

void RankWatch::Shared::watch(int rank) {
  const auto at = static_cast<size_t>(rank);
  const int64_t now = store->add(numbered("beat", rank), 0);
  if (now != beats[at]) {
    beats[at] = now;
    seen[at] = Clock::now();
  } else if (seconds_since(seen[at]) > place.patience) {
    pronounce(silent(rank), 1);
  }
}

// Those who have not answered when the time is over are lost.
void RankWatch::Shared::count() {
  if (!called) called = Clock::now();
  std::vector<int> missing;
  for (int rank = 0; rank < place.size; ++rank) {
    if (store->add(numbered("here", rank), 0) == 0) missing.push_back(rank);
  }
  if (missing.empty()) {
    return pronounce(
        formatted("a connection between the {} ranks broke and all are there: {}", place.size, got(*store, "broke")),
        0);
  }
  if (seconds_since(*called) < kRollCall.count()) return;
  pronounce(names(missing, place.size) + (missing.size() == 1 ? " is lost" : " are lost"), missing.size());
}

void RankWatch::Shared::hear() {
  const std::string text = got(*store, kVerdict);
  const size_t space = text.find(' ');
  const auto lost = static_cast<int64_t>(parse_unsigned(text.substr(0, space)).value_or(0));
  const auto began = Clock::now();
  if (place.rank != 0) store->add("read", 1);
  while (place.rank == 0 && store->add("read", 0) < place.size - 1 - lost && seconds_since(began) < kFarewell.count()) {
    std::this_thread::sleep_for(kTick);
  }
  decide(text.substr(space + 1));
}

RankWatch::RankWatch(const RankPlace& place, const std::string& identity)
    : place_(place), shared_(std::make_shared<Shared>()) {
  const auto began = Clock::now();
  if (place.rank == 0) store_ = connected(place, true);
  while ((own_address_ = address_towards(place.address, place.port)).empty()) {
    if (seconds_since(began) > place.patience) {
      throw bad_input("MASTER_ADDR", formatted("expected rank 0 at {}:{}, nobody answered there for {} s",
                                               place.address, place.port, place.patience));
    }
    std::this_thread::sleep_for(Seconds(0.1));
  }
  if (place.rank != 0) store_ = connected(place, false);
  try {
    meet(identity);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // c10d throws c10::Error and std::system_error
    throw bad_input("MASTER_ADDR", names({0}, place.size) + " was lost while the ranks met");
  }
  shared_->place = place;
  shared_->store = connected(place, false);
  shared_->beats.assign(static_cast<size_t>(place.size), -1);
  shared_->seen.assign(static_cast<size_t>(place.size), Clock::now());
  shared_->heard = Clock::now();
  const WithoutSignals here;
  std::thread([shared = shared_] { shared->work(); }).detach();
}

RankWatch::~RankWatch() {
  close();
}

void RankWatch::meet(const std::string& identity) {
  const auto began = Clock::now();
  const auto late = [&] { return seconds_since(began) > place_.patience; };
  if (store_->add(numbered("came", place_.rank), 1) != 1) {
    throw bad_input("RANK", formatted("expected a number of its own for each rank, got {} twice", place_.rank));
  }
  put(*store_, numbered("identity", place_.rank), identity);
  if (place_.rank != 0) {
    while (!store_->check({"start"})) {
      if (late()) throw bad_input("MASTER_ADDR", "expected all ranks to come, rank 0 still waits for one");
      std::this_thread::sleep_for(kTick);
    }
    const std::string fault = got(*store_, "start");
    store_->add("started", 1);
    if (!fault.empty()) throw bad_input("RANK", fault);
    return;
  }
  std::vector<int> missing, others;
  do {
    if (!missing.empty()) std::this_thread::sleep_for(kTick);
    missing.clear();
    for (int rank = 1; rank < place_.size; ++rank) {
      if (!store_->check({numbered("identity", rank)})) missing.push_back(rank);
    }
  } while (!missing.empty() && !late());
  std::string fault;
  if (!missing.empty()) fault = formatted("{} did not come within {} s", names(missing, place_.size), place_.patience);
  for (int rank = 1; rank < place_.size && fault.empty(); ++rank) {
    const std::string other = got(*store_, numbered("identity", rank));
    if (other != identity) {
      fault = formatted("expected what rank 0 runs ({}), rank {} has {}", printable(identity, 200), rank,
                        printable(other, 200));
    }
  }
  put(*store_, "start", fault);
  const auto said = Clock::now();
  const int64_t there = place_.size - 1 - static_cast<int64_t>(missing.size());
  while (store_->add("started", 0) < there && seconds_since(said) < kFarewell.count())
    std::this_thread::sleep_for(kTick);
  if (!fault.empty()) throw bad_input("RANK", fault);
}

void RankWatch::alive() {
  ++shared_->moved;
}

RankWatch::Waiting::Waiting(RankWatch& watch) : watch_(watch) {
  ++watch_.shared_->waiting;
}

RankWatch::Waiting::~Waiting() {
  ++watch_.shared_->moved;
  --watch_.shared_->waiting;
}

std::optional<std::string> RankWatch::verdict() const {
  const std::lock_guard lock(shared_->mutex);
  // The thread hangs where the machine of rank 0 is gone without a word.
  if (!shared_->verdict && seconds_since(shared_->heard) > place_.patience + kFarewell.count()) {
    shared_->verdict = shared_->silent(0);
  }
  return shared_->verdict;
}

std::string RankWatch::roll_call(const std::string& what) {
  const auto began = Clock::now();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->broke = printable(what.substr(0, what.find('\n')), 200);
    shared_->alarm = true;
    shared_->changed.notify_all();
  }
  const double most = (2 * kRollCall + kFarewell).count();
  while (seconds_since(began) < most) {
    if (const auto line = verdict()) return *line;
    std::this_thread::sleep_for(kTick);
  }
  return formatted("{} does not answer", names({0}, place_.size));
}

void RankWatch::fail(const std::string& line) {
  if (verdict()) return;
  const std::string whole = formatted("{} ended: {}", names({place_.rank}, place_.size), printable(line, 300));
  const auto tell = [shared = shared_, whole] {
    shared->pronounce(whole, 0);
    const auto began = Clock::now();
    while (!shared->decided() && seconds_since(began) < kFarewell.count()) std::this_thread::sleep_for(kTick);
  };
  try {
    done_within(2 * kFarewell, tell);
  } catch (const std::exception&) {  // there is nobody to tell
  }
}

void RankWatch::close() {
  shared_->closing = true;
  std::unique_lock lock(shared_->mutex);
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kFarewell, [&] { return shared_->ended; });
}

}  // namespace sb
