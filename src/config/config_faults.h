#pragma once
#include "base/error.h"

namespace sb {

// Error that holds all faults of a config, one per line, and the key of the first fault.
class ConfigFaults : public Error {
 public:
  ConfigFaults(const std::string& lines, std::string key) : Error(Exit::bad_input, lines), first_key_(std::move(key)) {}
  const std::string& first_key() const { return first_key_; }

 private:
  std::string first_key_;
};

}  // namespace sb
