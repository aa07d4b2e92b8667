// What stands in a lock: who holds it, and a count that goes on for as long as the holder lives.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sb {

struct LockRecord {
  std::string token;     // of this one holding: no other ever has it
  uint64_t beats = 0;    // goes up every so many seconds
  bool held = true;      // false: given back
  double every = 0;      // seconds from beat to beat
  int64_t process = 0;   // its number …
  uint64_t started = 0;  // … and start, in ticks since the machine's: numbers are given out again
  std::string place;     // where process numbers mean the same ones: this boot of this kernel, this space of processes
  std::string host, since;  // for people
};

constexpr double kLeastBeat = 0.01, kMostBeat = 3600;
// Seconds from beat to beat, 10; SELECTIVBENCH_HEARTBEAT has another. Throws bad_input for what is none.
double beat_seconds();
// A lock whose beats stay away for so many of them is anybody's.
constexpr double kMissedBeats = 6;

LockRecord own_record();
// Its length does not depend on `beats` and `held`, which are written in place.
std::string lock_text(const LockRecord& record);
std::optional<LockRecord> parse_lock(std::string_view text);
std::string holder_text(const LockRecord& record);  // "process 12 on host since …", printable

// What can be said of the process without waiting for a beat.
enum class Holder { gone, there, unknown };  // unknown: of another machine, boot or space of processes
Holder look_for(const LockRecord& record);

}  // namespace sb
