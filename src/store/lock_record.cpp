#include "store/lock_record.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr const char* kFirstLine = "selectivbench lock 1";
constexpr double kUsualBeat = 10;
constexpr size_t kTokenDigits = 32, kLongestHost = 255;

std::string first_line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Scope of a process id: containers share the boot id but not the process ids.
std::string this_place() {
  const std::string boot = first_line_of("/proc/sys/kernel/random/boot_id");
  char space[128] = "";
  const ssize_t size = ::readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
  if (boot.empty() || size <= 0) return "";
  std::string place = boot + "/" + std::string(space, static_cast<size_t>(size));
  std::replace_if(
      place.begin(), place.end(), [](char c) { return c <= ' ' || c > '~'; }, '_');
  return place;
}

struct ProcessFacts {
  char state = 'X';
  uint64_t started = 0;
};

// Reads state and start time from /proc/PID/stat: "12 (name, may contain anything) S 1 …", the start is field 22.
std::optional<ProcessFacts> facts_of(int64_t process) {
  const std::string line = first_line_of(formatted("/proc/{}/stat", process));
  const size_t name = line.rfind(')');
  if (name == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name + 1));
  ProcessFacts facts;
  std::string skipped;
  rest >> facts.state;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  if (!(rest >> facts.started)) return std::nullopt;
  return facts;
}

std::string new_token() {
  std::random_device source;
  std::string token;
  while (token.size() < kTokenDigits) token += formatted("{:08x}", source());
  return token;
}

bool is_token(const std::string& text) {
  return text.size() == kTokenDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

double beat_seconds() {
  const char* asked = std::getenv("SELECTIVBENCH_HEARTBEAT");
  if (asked == nullptr || *asked == 0) return kUsualBeat;
  const auto seconds = parse_finite(asked);
  if (!seconds || *seconds < kLeastBeat || *seconds > kMaxBeat)
    throw bad_input("SELECTIVBENCH_HEARTBEAT",
                    formatted("expected {} to {} seconds, got '{}'", kLeastBeat, kMaxBeat, printable(asked)));
  return *seconds;
}

LockRecord own_record() {
  LockRecord record;
  record.token = new_token();
  record.heartbeat_seconds = beat_seconds();
  record.process = ::getpid();
  if (const auto facts = facts_of(record.process)) record.started = facts->started;
  record.place = this_place();
  char host[kLongestHost + 1] = "unknown";
  ::gethostname(host, kLongestHost);
  record.host = one_line(host);
  record.since = utc_now();
  return record;
}

std::string lock_text(const LockRecord& r) {
  return formatted(
      "{}\nbeats {:020}\nstate {}\ntoken {}\nevery {}\nprocess {}\nstarted {}\nplace {}\nhost {}\nsince {}\nend\n",
      kFirstLine, r.heartbeat_count, r.held ? "held" : "free", r.token, shortest(r.heartbeat_seconds), r.process,
      r.started, r.place, r.host, r.since);
}

std::optional<LockRecord> parse_lock(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return std::nullopt;
  std::map<std::string, std::string> values;
  bool whole = false;
  while (!whole && std::getline(in, line)) {
    const size_t space = line.find(' ');
    whole = line == "end";
    if (space != std::string::npos) values.emplace(line.substr(0, space), line.substr(space + 1));
  }
  const auto process = parse_integer(values["process"]);
  const auto started = parse_unsigned(values["started"]), beats = parse_unsigned(values["beats"]);
  const auto every = parse_finite(values["every"]);
  const std::string state = values["state"];
  if (!whole || !is_token(values["token"]) || !process || *process <= 0 || !started || !beats || !every ||
      *every < kLeastBeat || *every > kMaxBeat || (state != "held" && state != "free"))
    return std::nullopt;
  return LockRecord{values["token"], *beats,          state == "held", *every,         *process,
                    *started,        values["place"], values["host"],  values["since"]};
}

std::string holder_text(const LockRecord& record) {
  return formatted("process {} on {} since {}", record.process, printable(record.host, 200),
                   printable(record.since, 40));
}

Holder look_for(const LockRecord& record) {
  if (record.place.empty() || record.started == 0 || record.place != this_place()) return Holder::unknown;
  const auto facts = facts_of(record.process);
  if (!facts) {  // /proc may be unreadable, so kill() decides whether the process exists
    return ::kill(static_cast<pid_t>(record.process), 0) != 0 && errno == ESRCH ? Holder::gone : Holder::unknown;
  }
  const bool over = facts->state == 'Z' || facts->state == 'X' || facts->started != record.started;
  return over ? Holder::gone : Holder::there;
}

}  // namespace sb
