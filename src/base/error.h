// The library reports every failure as an Error. Only the command line turns errors into text and exit codes.
#pragma once
#include <stdexcept>
#include <string>

namespace sb {

enum class Exit : int {
  done = 0,
  check_failed = 1,
  bad_input = 2,
  no_scheduler = 69,  // the scheduler does not answer, or refuses
  cannot_write = 74,
  stopped = 75,     // the same command resumes
  taken_over = 76,  // another process owns the run now
  lost_rank = 79,   // one of several ranks is lost; the same command resumes
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& line) : std::runtime_error(line), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// "[where] what": e.g. [task.gap] min (12) > max (10), quick.toml:14:7
inline Error bad_input(const std::string& where, const std::string& what) {
  return Error(Exit::bad_input, "[" + where + "] " + what);
}
inline Error check_failed(const std::string& where, const std::string& what) {
  return Error(Exit::check_failed, "[" + where + "] " + what);
}
inline Error no_scheduler(const std::string& where, const std::string& what) {
  return Error(Exit::no_scheduler, "[" + where + "] " + what);
}
inline Error cannot_write(const std::string& where, const std::string& what) {
  return Error(Exit::cannot_write, "[" + where + "] " + what);
}

}  // namespace sb
