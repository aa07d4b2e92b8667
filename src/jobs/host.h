// What this module needs from the program: it neither prints nor handles signals itself.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "jobs/console.h"

namespace sb {

struct Host {
  std::function<void(std::string_view text)> print;     // results
  std::function<void(std::string_view line)> complain;  // everything else, one line
  std::function<Console()> console;                     // starts its clock
  std::function<bool()> stop_requested;
  // While the returned object exists, a signal only requests a stop.
  std::function<std::shared_ptr<void>()> graceful_stop;
  std::string program;  // path that starts this program; empty: not known
};

}  // namespace sb
