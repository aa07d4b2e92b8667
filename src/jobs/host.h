// What the program lends to work on a suite: this module neither prints nor handles signals.
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
  std::function<Console()> console;                     // begins its clock
  std::function<bool()> stop_requested;
  // While the returned object exists, a signal only requests a stop.
  std::function<std::shared_ptr<void>()> graceful_stop;
  std::string program;  // path that starts this program; empty: not known
};

}  // namespace sb
