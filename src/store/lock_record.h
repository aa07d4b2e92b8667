// Content of a lock file: its owner, and a heartbeat counter that increases while the owner lives.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sb {

struct LockRecord {
  std::string token;             // unique to this acquisition
  uint64_t heartbeat_count = 0;  // increases while the owner lives
  bool held = true;              // false: released
  double heartbeat_seconds = 0;  // seconds between heartbeats
  int64_t process = 0;           // process id …
  uint64_t started = 0;          // … and its start, in ticks since boot, since ids are reused
  std::string place;             // scope of the process id: boot id and PID namespace
  std::string host, since;       // for people
};

constexpr double kLeastBeat = 0.01, kMaxBeat = 3600;
// Seconds between heartbeats: SELECTIVBENCH_HEARTBEAT, default 10. Throws bad_input for an invalid value.
double beat_seconds();
// After this many missed heartbeats, any process may take the lock.
constexpr double kMissedBeats = 6;

LockRecord own_record();
// The length does not depend on `heartbeat_count` and `held`, which are overwritten in place.
std::string lock_text(const LockRecord& record);
std::optional<LockRecord> parse_lock(std::string_view text);
std::string holder_text(const LockRecord& record);  // "process 12 on host since …", printable

// What is known about the owner without waiting for a heartbeat.
enum class Holder { gone, there, unknown };  // unknown: another machine, boot or PID namespace
Holder look_for(const LockRecord& record);

}  // namespace sb
