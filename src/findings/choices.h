// Settings of each model (learning rate, residual, convolution), chosen on a grammar that no reported figure uses.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "findings/claims.h"

namespace sb {

// The network choices of the corrected protocol; "" if the config does not have the key.
struct Variant {
  std::string residual, conv;
  auto operator<=>(const Variant&) const = default;

  std::string text() const;  // "pre, conv 4"
};
Variant variant_of(const Group& group);

// Whether the run is on the grammar of the choices.
bool is_choice(const Rows& rows, const Claims& claims, size_t run);

// One setting that was tried on a task at the scale of the choices, under the corrected protocol.
struct Choice {
  std::string model;
  Variant variant;
  std::string lr;               // plain text
  std::optional<double> valid;  // accuracy; nullopt if the run diverged or collapsed
  double error = 0;             // its standard error
  bool chosen = false;          // best of its model
  bool open = false;            // chosen, but another variant of the model was not tried at this rate
  bool at_edge = false;         // chosen, and no larger or no smaller rate was tried with this model
};
// By model, in the paper's order. Settings are chosen on task 1; other tasks only show whether they would differ.
std::vector<Choice> choices_of(const Rows& rows, const Claims& claims, int task = 1);

// The models whose settings were chosen from several learning rates.
std::set<std::string> tuned_models(const Rows& rows, const Claims& claims);

// How much accuracy other settings might still give this model, whose runs use the learning rate `used`: the largest
// gain of another setting over this one (or over the chosen one, if this rate was not tried) where other tasks were
// tried on the grammar of the choices, plus two standard errors as if the two were measured on different samples; if
// the best rate there is the largest, what the rate gave counts once more. 1 if the chosen rate is the largest or
// smallest tried, and no other task was tried with all variants and a rate beyond it. 0 if nothing was chosen for this
// model, or from one rate.
double open_gain(const Rows& rows, const Claims& claims, const std::string& model, const std::string& used);

}  // namespace sb
