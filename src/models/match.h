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
  int64_t step = 1;           // widths are multiples of it
  bool solve_states = false;  // d_state too, at the width found, where the model has it and `switches` do not say it
  Residual residual = Residual::post;
};

struct Matched {
  ModelConfig config;
  Cost cost;
  double size = 0;
  std::optional<int64_t> d_state;  // where it is not the model's own
};

// Over every width that runs, the lowest of equals; nothing where the size is 0 at all of them (the state of a cache)
// or no width runs. d_state goes in steps of 8, which kernels are made for.
std::optional<Matched> nearest_width(const MatchRequest& request);

// The sizes that can be asked for.
double parameters_of(const Cost& cost);
double state_of(const Cost& cost);
double flops_of(const Cost& cost);

}  // namespace sb
