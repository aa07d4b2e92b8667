#include "native/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "base/number.h"

namespace sb::python {
namespace {

constexpr double kShare = .8;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The number behind a name in a file of lines "name number"; `otherwise` where there is none.
double number_in(const std::string& path, const std::string& name, double otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string key;
    double value = 0;
    if (fields >> key && key == name && fields >> value) return value;
  }
  return otherwise;
}

double of_control_group() {
  std::ifstream groups("/proc/self/cgroup");
  std::string own = "/";
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) own = line.substr(3);
  for (const std::string& folder : {"/sys/fs/cgroup" + own, std::string("/sys/fs/cgroup")}) {
    std::ifstream file(folder + "/memory.max");
    double most = 0;
    if (file >> most) return most - number_in(folder + "/memory.stat", "anon", 0);
  }
  return kUnlimited;
}

double of_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<double>(limit.rlim_cur) - 1024 * number_in("/proc/self/status", "VmSize:", 0);
}

}  // namespace

double free_memory() {
  const double machine = 1024 * number_in("/proc/meminfo", "MemAvailable:", kUnlimited);
  return std::max(0.0, std::min({machine, of_control_group(), of_addresses()}));
}

void expect_memory(const std::string& where, const std::string& what, double bytes, const std::string& remedy) {
  constexpr double kAlways = 1 << 26;  // not worth a look
  if (bytes <= kAlways) return;
  const double most = kShare * free_memory();
  if (bytes > most)
    throw bad_input(where, what + " take about " + bytes_text(bytes) + ", expected at most " + bytes_text(most) +
                               ", four fifths of what is free; " + remedy);
}

}  // namespace sb::python
