#include "train/ranks/rank_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "base/signal_blocker.h"
#include "base/stopwatch.h"
#include "base/text.h"

namespace sb {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kRollCall = 5;  // seconds that ranks have to answer a roll call
constexpr double kFarewell = 3;  // seconds that rank 0, which hosts the store, waits for others to read the verdict
constexpr Seconds kTick(0.02);
constexpr const char *kVerdict = "verdict", *kAlarm = "alarm", *kStop = "stop";
constexpr int kNobody = -1;

// Stored as "LOST CODE BY LINE".
struct Verdict {
  int64_t lost = 0;  // number of lost ranks, which will not read the verdict
  Exit code = Exit::lost_rank;
  int by = kNobody;  // the rank that failed
  std::string line;

  std::string text() const { return formatted("{} {} {} {}", lost, static_cast<int>(code), by, line); }

  static Verdict parsed(const std::string& text) {
    Verdict out;
    size_t at = 0;
    const auto number = [&](int64_t otherwise) {
      const size_t space = std::min(text.find(' ', at), text.size());
      const auto value = parse_integer(text.substr(at, space - at));
      at = std::min(space + 1, text.size());
      return value.value_or(otherwise);
    };
    out.lost = number(0);
    out.code = static_cast<Exit>(number(static_cast<int>(Exit::lost_rank)));
    out.by = static_cast<int>(number(kNobody));
    out.line = text.substr(at);
    return out;
  }
};

}  // namespace

// State shared by the monitoring thread and the rank.
struct RankWatch::Shared {
  RankPlace place;
  RankStore store;                  // the thread's own connection
  std::atomic<int64_t> moved = 0;   // progress counter
  std::atomic<int> waiting = 0;     // > 0: this rank waits for others
  std::atomic<bool> alarm = false;  // a connection broke
  std::atomic<bool> stop_asked = false;
  std::atomic<bool> closing = false;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Verdict> verdict;
  Stopwatch heard;             // time since the store last answered
  std::string broke;           // error text of the broken connection
  std::function<bool()> stop;  // whether this rank wishes to stop
  bool ended = false;

  // Used only by the thread:
  int64_t told = -1;
  bool rung = false, answered = false, wished = false;
  std::vector<int64_t> beats;
  std::vector<Stopwatch> seen;
  std::optional<Stopwatch> called;

  void work();
  void round();
  void pass_wish();
  void watch(int rank);
  void count();
  // Publishes the verdict for all ranks, including this one.
  void pronounce(const Verdict& what) { put_first(*store, kVerdict, what.text()); }
  void hear();
  void decide(const Verdict& what) {
    const std::lock_guard lock(mutex);
    if (!verdict) verdict = what;
    changed.notify_all();
  }
  bool decided() const {
    const std::lock_guard lock(mutex);
    return verdict.has_value();
  }
  Verdict silent(int rank) const {
    return {1, Exit::lost_rank, kNobody,
            formatted("[train] {} sent no heartbeat for {} s", names({rank}, place.size), place.timeout_seconds)};
  }
  Verdict missing(const std::vector<int>& ranks) const {
    return {static_cast<int64_t>(ranks.size()), Exit::lost_rank, kNobody,
            formatted("[train] {} {} lost", names(ranks, place.size), ranks.size() == 1 ? "is" : "are")};
  }
  // Only rank 0 reports an error of a rank; every rank reports lost ranks.
  GroupEnded end(const Verdict& what) const {
    const bool others = what.by != kNobody && what.by != 0 && place.rank == 0;
    const std::string line =
        others ? formatted("[train] {} ended: {}", names({what.by}, place.size), what.line) : what.line;
    return {what.code, line, what.by != kNobody && place.rank != 0};
  }
};

void RankWatch::Shared::work() {
  const Seconds beat(std::clamp(place.timeout_seconds / 10, 0.05, 0.25));
  while (!closing && !decided()) {
    try {
      round();
    } catch (const std::exception&) {
      // If the store is gone, rank 0 is lost.
      if (!closing) decide(missing({0}));
    }
    std::unique_lock lock(mutex);
    heard = {};
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
  pass_wish();
  if (alarm && !rung) {
    rung = true;
    std::string what;
    {
      const std::lock_guard lock(mutex);  // not held during store calls, which may hang
      what = broke;
    }
    put(*store, "broke", what);
    store->add(kAlarm, 1);
  }
  if (store->add(kAlarm, 0) > 0) {
    if (!answered) store->add(numbered("here", place.rank), 1);
    answered = true;
    if (place.rank == 0) return count();
  }
  if (place.rank != 0) return watch(0);
  for (int rank = 1; rank < place.size; ++rank) watch(rank);
}

// Passes stop requests to rank 0 through the store. This works even while rank 0 evaluates and the others wait for it.
void RankWatch::Shared::pass_wish() {
  if (place.rank == 0) {
    if (!stop_asked && store->add(kStop, 0) > 0) stop_asked = true;
    return;
  }
  std::function<bool()> ask;
  {
    const std::lock_guard lock(mutex);
    ask = stop;
  }
  if (wished || !ask || !ask()) return;
  wished = true;
  store->add(kStop, 1);
}

void RankWatch::Shared::watch(int rank) {
  const auto at = static_cast<size_t>(rank);
  const int64_t now = store->add(numbered("beat", rank), 0);
  if (now != beats[at]) {
    beats[at] = now;
    seen[at] = {};
  } else if (seen[at].seconds() > place.timeout_seconds) {
    pronounce(silent(rank));
  }
}

// Ranks that do not answer the roll call in time are lost.
void RankWatch::Shared::count() {
  if (!called) called.emplace();
  std::vector<int> absent;
  for (int rank = 0; rank < place.size; ++rank) {
    if (store->add(numbered("here", rank), 0) == 0) absent.push_back(rank);
  }
  if (absent.empty()) {
    return pronounce({0, Exit::lost_rank, kNobody,
                      formatted("[train] a connection between the {} ranks broke, but all are alive: {}", place.size,
                                got(*store, "broke"))});
  }
  if (called->seconds() >= kRollCall) pronounce(missing(absent));
}

void RankWatch::Shared::hear() {
  const Verdict what = Verdict::parsed(got(*store, kVerdict));
  const Stopwatch began;
  if (place.rank != 0) store->add("read", 1);
  while (place.rank == 0 && store->add("read", 0) < place.size - 1 - what.lost && began.seconds() < kFarewell) {
    std::this_thread::sleep_for(kTick);
  }
  decide(what);
}

RankWatch::RankWatch(const RankPlace& place, const std::string& identity)
    : place_(place), meeting_(meet(place, identity)), shared_(std::make_shared<Shared>()) {
  shared_->place = place;
  shared_->store = connected(place, false);
  shared_->beats.assign(static_cast<size_t>(place.size), -1);
  shared_->seen.resize(static_cast<size_t>(place.size));
  shared_->heard = {};
  const SignalBlocker here;
  std::thread([shared = shared_] { shared->work(); }).detach();
}

RankWatch::~RankWatch() {
  close();
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

std::optional<GroupEnded> RankWatch::verdict() const {
  const std::lock_guard lock(shared_->mutex);
  // The thread hangs if the machine of rank 0 disappears without closing its connections.
  if (!shared_->verdict && shared_->heard.seconds() > place_.timeout_seconds + kFarewell) {
    shared_->verdict = shared_->silent(0);
  }
  if (!shared_->verdict) return std::nullopt;
  return shared_->end(*shared_->verdict);
}

GroupEnded RankWatch::roll_call(const std::string& what) {
  const Stopwatch began;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->broke = printable(what.substr(0, what.find('\n')), 200);
    shared_->alarm = true;
    shared_->changed.notify_all();
  }
  while (began.seconds() < 2 * kRollCall + kFarewell) {
    if (const auto end = verdict()) return *end;
    std::this_thread::sleep_for(kTick);
  }
  return {Exit::lost_rank, formatted("[train] {} does not answer", names({0}, place_.size)), false};
}

GroupEnded RankWatch::fail(Exit code, const std::string& line) {
  const Verdict mine{0, code, place_.rank, printable(line, 300)};
  const auto tell = [shared = shared_, mine] {
    shared->pronounce(mine);
    const Stopwatch began;
    while (!shared->decided() && began.seconds() < kFarewell) std::this_thread::sleep_for(kTick);
  };
  try {
    if (!verdict()) done_within(2 * kFarewell, tell);
    const std::lock_guard lock(shared_->mutex);
    const auto& all = shared_->verdict;
    // A rank that stopped because the others had ended reports their verdict, not its own error.
    const bool own_words = !all || (all->by == kNobody && code != Exit::stopped) || (all->by == 0 && place_.rank == 0);
    if (!own_words) return shared_->end(*all);
  } catch (const std::exception&) {  // no other rank can be reached
  }
  return {code, line, false};
}

void RankWatch::listen(std::function<bool()> stop) {
  const std::lock_guard lock(shared_->mutex);
  shared_->stop = std::move(stop);
}

bool RankWatch::stop_asked() const {
  return shared_->stop_asked;
}

bool RankWatch::ended() const {
  return shared_->decided();
}

void RankWatch::close() {
  shared_->closing = true;
  std::unique_lock lock(shared_->mutex);
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, Seconds(kFarewell), [&] { return shared_->ended; });
}

}  // namespace sb
