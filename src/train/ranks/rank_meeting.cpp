#include "train/ranks/rank_meeting.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "train/ranks/process_group.h"

namespace sb {
namespace {

// Seconds that rank 0, which hosts the store, waits for the others to read its message: those that have arrived
// (kFarewell), or also those that may still arrive (kLateness).
constexpr double kFarewell = 3, kLateness = 10;
constexpr std::chrono::milliseconds kTick(20), kKnock(100);

// Keys of the store. kStart: rank 0's error message "[where] what"; empty: the run can begin.
constexpr const char* kStart = "start";
constexpr const char* kOdd = "odd";           // error message of another rank
constexpr const char* kOddSize = "odd_size";  // number of ranks that the other rank expects
constexpr const char* kSeenAt = "seen_at";    // address of rank 0's machine that other machines can reach

// Lines "KEY=VALUE".
std::map<std::string, std::string> values_of(const std::string& identity) {
  std::map<std::string, std::string> out;
  for (const auto& line : split(identity, '\n')) {
    const size_t sign = std::min(line.find('='), line.size());
    if (!line.empty()) out[line.substr(0, sign)] = line.substr(std::min(sign + 1, line.size()));
  }
  return out;
}

// The first key in which a rank's identity is not rank 0's, with both values.
std::string difference(const std::string& first, const std::string& other, int rank) {
  const auto mine = values_of(first), its = values_of(other);
  auto keys = mine;
  keys.insert(its.begin(), its.end());
  const auto shown = [](const auto& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string("nothing") : printable(found->second, 200);
  };
  for (const auto& [key, value] : keys) {
    const std::string here = shown(mine, key), there = shown(its, key);
    if (mine.contains(key) && its.contains(key) && mine.at(key) == its.at(key)) continue;
    return formatted("{}: {} on rank 0, {} on rank {}", printable(key), here, there, rank);
  }
  return "";
}

class Meeting {
 public:
  Meeting(RankStore store, RankPlace place, std::string identity)
      : kept_(std::move(store)), store_(*kept_), place_(std::move(place)), identity_(std::move(identity)) {}

  void come(const Route& route) {
    if (!stays_on_machine(route.there)) put_first(store_, kSeenAt, route.there);
    if (place_.rank == 0) put(store_, "size", std::to_string(place_.size));
    if (store_.add(numbered("came", place_.rank), 1) != 1)
      object(formatted("[RANK] two ranks have the number {}", place_.rank));
    if (place_.rank != 0) compare_sizes();
    if (odd_.empty()) put(store_, numbered("identity", place_.rank), identity_);
  }

  // Call after all ranks have arrived. On many hosts, /etc/hosts maps the host's own name to 127.0.1.1.
  std::string address_for_all(const Route& route) {
    return stays_on_machine(route.here) && store_.check({kSeenAt}) ? got(store_, kSeenAt) : route.here;
  }

  // For ranks other than 0.
  void wait_for_start() {
    std::string fault;
    try {
      await(kStart, "rank 0 still waits for another rank", kLateness);  // it says which
      fault = got(store_, kStart);
      store_.add("started", 1);
    } catch (const Error&) {
      throw;
    } catch (const std::exception&) {  // rank 0 has left already
      if (odd_.empty()) throw;
      fault = odd_;
    }
    if (!fault.empty()) throw GroupEnded(Exit::bad_input, fault, true);
    if (!odd_.empty()) throw Error(Exit::bad_input, odd_);  // the others have started without this rank
  }

  // For rank 0.
  void start() {
    std::vector<int> missing;
    std::string fault;
    while (fault.empty()) {
      missing.clear();
      fault = look(missing);
      if (!fault.empty()) {
        tell(fault, others(), kLateness);  // also for ranks that have not arrived yet
      } else if (missing.empty()) {
        return tell("", place_.size - 1, kFarewell);
      } else if (late()) {
        fault = formatted("[RANK] {} did not connect within {} s", names(missing, place_.size), place_.timeout_seconds);
        tell(fault, place_.size - 1 - static_cast<int64_t>(missing.size()), kFarewell);
      } else {
        std::this_thread::sleep_for(kTick);
      }
    }
    throw Error(Exit::bad_input, fault);
  }

 private:
  // Publishes the message and waits until `readers` ranks have read it, `seconds` at most.
  void tell(const std::string& fault, int64_t readers, double seconds) {
    put(store_, kStart, fault);
    const Stopwatch said;
    while (store_.add("started", 0) < readers && said.seconds() < seconds) std::this_thread::sleep_for(kTick);
  }

  // Number of other ranks, by the largest number of ranks that any rank expects.
  int64_t others() {
    const auto odd = store_.check({kOddSize}) ? parse_integer(got(store_, kOddSize)) : std::nullopt;
    return std::max<int64_t>(place_.size, odd.value_or(0)) - 1;
  }

  bool late(double more = 0) const { return began_.seconds() > place_.timeout_seconds + more; }

  void await(const char* key, const char* otherwise, double more = 0) {
    while (!store_.check({key})) {
      if (late(more)) throw bad_input("MASTER_ADDR", otherwise);
      std::this_thread::sleep_for(kTick);
    }
  }

  void compare_sizes() {
    await("size", "rank 0 does not report the number of ranks");
    const std::string size = got(store_, "size");
    if (size == std::to_string(place_.size)) return;
    object(formatted("[{}] expected the same number on all ranks, rank 0 has {}, rank {} has {}", place_.origin, size,
                     place_.rank, place_.size));
  }

  void object(const std::string& line) {
    odd_ = line;
    try {
      put_first(store_, kOddSize, std::to_string(place_.size));
      put_first(store_, kOdd, line);
    } catch (const std::exception&) {  // rank 0 has left, because another rank reported an error earlier
    }
  }

  // Collects the ranks that have not arrived yet; returns an error of a rank that has, or an empty string.
  std::string look(std::vector<int>& missing) {
    std::string fault;
    if (store_.check({kOdd})) fault = got(store_, kOdd);
    for (int rank = 1; rank < place_.size; ++rank) {
      const std::string key = numbered("identity", rank);
      if (!store_.check({key})) {
        missing.push_back(rank);
      } else if (const std::string other = fault.empty() ? got(store_, key) : identity_; other != identity_) {
        fault = "[RANK] expected the same on all ranks, got " + difference(identity_, other, rank);
      }
    }
    return fault;
  }

  const RankStore kept_;
  c10d::TCPStore& store_;
  const RankPlace place_;
  const std::string identity_;
  const Stopwatch began_;
  std::string odd_;  // error that this rank has found
};

}  // namespace

RankMeeting meet(const RankPlace& place, const std::string& identity) {
  const Stopwatch began;
  RankMeeting out;
  if (place.rank == 0) {
    check_address_is_here(place);
    out.store = connected(place, true);
  } else {
    check_address_is_known(place);
  }
  Route route;
  while ((route = route_to(place.address, place.port)).here.empty()) {
    if (began.seconds() > place.timeout_seconds) {
      throw bad_input("MASTER_ADDR", formatted("expected rank 0 at {}:{}, no answer for {} s", place.address,
                                               place.port, place.timeout_seconds));
    }
    std::this_thread::sleep_for(kKnock);
  }
  if (place.rank != 0) out.store = connected(place, false);
  try {
    const auto meeting = std::make_shared<Meeting>(out.store, place, identity);
    // The listener may be another program that never answers.
    if (!done_within(place.timeout_seconds, [meeting, route] { meeting->come(route); })) {
      throw bad_input("MASTER_ADDR", formatted("expected rank 0 at {}:{}, got something that does not answer",
                                               place.address, place.port));
    }
    place.rank == 0 ? meeting->start() : meeting->wait_for_start();
    out.own_address = meeting->address_for_all(route);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // c10d throws c10::Error and std::system_error
    throw bad_input("MASTER_ADDR", names({0}, place.size) + " was lost while the ranks met");
  }
  return out;
}

}  // namespace sb
