#include "config/rank_place.h"

#include <cctype>
#include <cstdlib>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr int kMaxPort = 65535;
constexpr const char* kPatience = "SELECTIVBENCH_RANK_TIMEOUT";

int whole(const Variables& variables, const char* name, int least, int most) {
  const auto text = variables(name);
  if (!text) throw bad_input(name, formatted("expected {} to {}, but it is not set", least, most));
  const auto value = parse_integer(*text);
  if (!value || *value < least || *value > most) {
    throw bad_input(name, formatted("expected {} to {}, got '{}'", least, most, printable(*text)));
  }
  return static_cast<int>(*value);
}

// Returns a valid host name or address, else throws.
std::string host(const char* name, const std::string& text) {
  bool sound = !text.empty() && text.size() <= 253 && text.front() != '-';
  for (const unsigned char c : text)
    sound = sound && (std::isalnum(c) != 0 || c == '.' || c == '-' || c == ':' || c == '_');
  if (!sound) throw bad_input(name, formatted("expected a host name or address, got '{}'", printable(text)));
  return text;
}

// A port for each job step, the same on all of its ranks, so that concurrent steps do not conflict.
int port_of_step(const Variables& variables) {
  constexpr int first = 20000, count = 10000;
  const auto number = [&](const char* name) {
    const auto text = variables(name);
    return text ? parse_unsigned(*text).value_or(0) % count : 0;
  };
  return first + static_cast<int>((number("SLURM_JOB_ID") * 31 + number("SLURM_STEP_ID")) % count);
}

void add_torchrun(const Variables& variables, RankPlace& out) {
  out.size = whole(variables, "WORLD_SIZE", 1, kMaxRanks);
  out.rank = whole(variables, "RANK", 0, out.size - 1);
  const auto address = variables("MASTER_ADDR");
  if (!address) throw bad_input("MASTER_ADDR", "expected the host of rank 0, but it is not set");
  out.address = host("MASTER_ADDR", *address);
  // torchrun itself listens on this port, with the protocol of its own version, so rank 0 uses the next port.
  const bool agent = variables("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  out.port = whole(variables, "MASTER_PORT", 1, kMaxPort - (agent ? 1 : 0)) + (agent ? 1 : 0);
  if (variables("LOCAL_WORLD_SIZE")) out.local_world_size = whole(variables, "LOCAL_WORLD_SIZE", 1, out.size);
  if (variables("LOCAL_RANK")) out.local_rank = whole(variables, "LOCAL_RANK", 0, out.size - 1);
  out.origin = "WORLD_SIZE";
}

void add_srun(const Variables& variables, RankPlace& out) {
  out.size = whole(variables, "SLURM_STEP_NUM_TASKS", 1, kMaxRanks);
  out.rank = whole(variables, "SLURM_PROCID", 0, out.size - 1);
  const auto address = variables("MASTER_ADDR"), nodes = variables("SLURM_STEP_NODELIST");
  out.address = address ? host("MASTER_ADDR", *address) : host("SLURM_STEP_NODELIST", first_host(nodes.value_or("")));
  out.port = variables("MASTER_PORT") ? whole(variables, "MASTER_PORT", 1, kMaxPort) : port_of_step(variables);
  if (variables("SLURM_LOCALID")) out.local_rank = whole(variables, "SLURM_LOCALID", 0, out.size - 1);
  out.origin = "SLURM_STEP_NUM_TASKS";
}

}  // namespace

Variables process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

RankPlace rank_place(const Variables& variables) {
  RankPlace out;
  if (const auto rank = variables("RANK"); rank && !variables("WORLD_SIZE")) {
    throw bad_input("WORLD_SIZE",
                    formatted("expected the number of ranks, since RANK is '{}', but it is not set", printable(*rank)));
  }
  if (variables("WORLD_SIZE")) {
    add_torchrun(variables, out);
  } else if (variables("SLURM_STEP_NUM_TASKS").value_or("1") != "1") {
    add_srun(variables, out);
  } else {
    return out;
  }
  out.grouped = true;
  if (variables(kPatience)) out.timeout_seconds = whole(variables, kPatience, 2, 86400);
  return out;
}

std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  std::string out = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return out;
  const size_t close = list.find(']', end);
  if (close == std::string::npos) return "";
  out += list.substr(end + 1, list.find_first_of(",-]", end + 1) - end - 1);
  const std::string rest = list.substr(close + 1, list.find(',', close + 1) - close - 1);
  // A second range ("r[0-3]n[0-7]") begins with its first number too.
  return out + (rest.empty() ? "" : first_host(rest));
}

std::pair<int, int> rows_of_rank(int batch, int rank, int size) {
  const auto bound = [&](int64_t r) { return static_cast<int>(r * batch / size); };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace sb
