// The width at which a model comes nearest to a size: parameters, state or operations.
#pragma once
#include <functional>
#include <optional>

#include "models/declare.h"

namespace sb {

struct MatchRequest {
  std::string model;
  Switches switches;
  int64_t layers = 8, inputs = 41, outputs = 1601;
  int64_t length = 400;                     // frames of a sequence, for the operations of mixing
  std::function<double(const Cost&)> size;  // what is to be matched
  double target = 0;
};

struct Matched {
  ModelConfig config;
  Cost cost;
  double size = 0;
};

// Over every width that runs, the lowest of equals; nothing where the size is 0 at all of them (the state of a cache)
// or no width runs.
std::optional<Matched> nearest_width(const MatchRequest& request);

}  // namespace sb
