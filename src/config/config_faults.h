#pragma once
#include "base/error.h"

namespace sb {

// All that is wrong with a config, a line a fault, and the key that the first of them is about.
class ConfigFaults : public Error {
 public:
  ConfigFaults(const std::string& lines, std::string key) : Error(Exit::bad_input, lines), first_key_(std::move(key)) {}
  const std::string& first_key() const { return first_key_; }

 private:
  std::string first_key_;
};

}  // namespace sb
