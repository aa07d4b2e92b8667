// Base class of the gloo and NCCL process groups: ranks monitor each other while they wait.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "train/ranks/process_group.h"
#include "train/ranks/rank_watch.h"

namespace sb {

class WatchedGroup : public ProcessGroup {
 public:
  void alive() override { watch_.alive(); }
  void listen(std::function<bool()> stop) override { watch_.listen(std::move(stop)); }
  bool stop_asked() const override { return watch_.stop_asked(); }
  bool ended() const override { return watch_.ended(); }
  GroupEnded fail(Exit code, const std::string& line) override { return watch_.fail(code, line); }

 protected:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds kSlice{200};  // how often a waiting rank checks for a verdict
  // Timeout of the process groups, in effect infinite: RankWatch decides how long to wait, since rank 0 may evaluate
  // for any time. Fits into 32 bits.
  static constexpr Milliseconds kForEver = std::chrono::hours(24 * 24);

  WatchedGroup(const RankPlace& place, const std::string& identity) : ProcessGroup(place), watch_(place, identity) {}

  // Waits until finished(kSlice) returns true; finished(t) waits up to the time t. Throws GroupEnded once there is a
  // verdict, or if `finished` throws.
  template <class Finished>
  void await(const Finished& finished) {
    const RankWatch::Waiting waiting(watch_);
    while (true) {
      if (const auto end = watch_.verdict()) throw *end;
      std::optional<std::string> broke;
      try {
        if (finished(kSlice)) return;
      } catch (const std::exception& error) {
        broke = error.what();
      }
      if (broke) throw watch_.roll_call(*broke);
    }
  }

  // Runs a call that may hang in a library, and waits for it. If the group ends first, the call is abandoned: its
  // thread keeps running and owns what the call captures.
  void await_call(std::function<void()> call) {
    const auto done = started(std::move(call));
    await([&](Milliseconds time) {
      if (done.wait_for(time) != std::future_status::ready) return false;
      done.get();
      return true;
    });
  }

  Milliseconds patience() const { return Milliseconds(static_cast<int64_t>(place().timeout_seconds * 1000)); }

  RankWatch watch_;
};

}  // namespace sb
