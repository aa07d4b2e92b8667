// Facts about models that modules without torch need. The models themselves: models/registry.h.
#pragma once
#include <string_view>

#include "base/residual.h"

namespace sb {

struct ModelFacts {
  std::string_view name;
  std::string_view title = {};     // "Gated DeltaNet"; empty: the name
  int colour = -1;                 // in the palette (report/palette.h); -1: none of its own
  bool published_in_bf16 = false;  // the published runs kept weights and moments in bfloat16 (quirks.delta_bf16)
  Residual published = Residual::post;
  // `pre` if the model is better with it on valid (configs/choices.toml). Models with `post` were not tried with it.
  Residual corrected = Residual::post;
};

inline constexpr ModelFacts kModelFacts[] = {
#define SB_MODEL(model, ...) {.name = #model, __VA_ARGS__},
#include "base/models.def"
#undef SB_MODEL
};

// The defaults if it is not one of our models.
constexpr ModelFacts model_facts(std::string_view name) {
  for (const ModelFacts& each : kModelFacts)
    if (each.name == name) return each;
  return {.name = name};
}

}  // namespace sb
