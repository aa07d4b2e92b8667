// Finds the width at which a model comes closest to a given size: parameters, state elements or operations.
#pragma once
#include <functional>
#include <optional>

#include "models/declare.h"

namespace sb {

struct MatchRequest {
  std::string model;
  Switches switches;
  int64_t layers = 8, inputs = 41, outputs = 1601;
  int64_t length = 400;                     // frames per sequence; affects the mixing operations
  std::function<double(const Cost&)> size;  // the quantity to match
  double target = 0;
  int64_t step = 1;           // only multiples of this width are tried
  bool solve_states = false;  // then also search d_state, if the model has this switch and `switches` does not set it
  Residual residual = Residual::post;
};

struct Matched {
  ModelConfig config;
  Cost cost;
  double size = 0;
  std::optional<int64_t> d_state;  // set if a value other than the model's default matched better
};

// Searches all valid widths; of equally good ones it returns the smallest. Returns nullopt if the model lacks one of
// the switches, if no width is valid, or if the size is 0 (the state of a model with a cache). d_state is searched in
// steps of 8, the granularity of the kernels.
std::optional<Matched> nearest_width(const MatchRequest& request);

// Values for MatchRequest::size. flops_of: forward operations per token.
double parameters_of(const Cost& cost);
double state_of(const Cost& cost);
double flops_of(const Cost& cost);

}  // namespace sb
