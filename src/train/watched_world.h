// A world whose ranks watch each other: what gloo's and NCCL's have in common.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "train/rank_watch.h"
#include "train/world.h"

namespace sb {

class WatchedWorld : public World {
 public:
  void alive() override { watch_.alive(); }
  void listen(std::function<bool()> stop) override { watch_.listen(std::move(stop)); }
  bool stop_asked() const override { return watch_.stop_asked(); }
  bool ended() const override { return watch_.ended(); }
  WorldEnded fail(Exit code, const std::string& line) override { return watch_.fail(code, line); }

 protected:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds kSlice{200};  // of waiting, between looks at what became of the others
  // How long others are waited for is the watch's to say: rank 0 evaluates as long as it takes. Fits 32 bits.
  static constexpr Milliseconds kForEver = std::chrono::hours(24 * 24);

  WatchedWorld(const RankPlace& place, const std::string& identity) : World(place), watch_(place, identity) {}

  // `finished` waits so long and says whether what is waited for is there, or throws.
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

  // Of what may hang in others' code: `call` is left alone, with what it holds, where the world has ended meanwhile.
  void await_call(std::function<void()> call) {
    const auto done = started(std::move(call));
    await([&](Milliseconds time) {
      if (done.wait_for(time) != std::future_status::ready) return false;
      done.get();
      return true;
    });
  }

  Milliseconds patience() const { return Milliseconds(static_cast<int64_t>(place().patience * 1000)); }

  RankWatch watch_;
};

}  // namespace sb
