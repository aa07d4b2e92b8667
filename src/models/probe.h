// The taxonomy measured instead of believed: a small layer is built, and its state Jacobian dS_t/dS_{t-1} taken.
#pragma once
#include "models/options.h"
#include "models/registry.h"

namespace sb {

struct Measured {
  Taxonomy row;  // what the numbers below say; state_elements counted on the probed layer
  // Smallest factor one step was seen to leave of the state: of an element where A acts on elements or is nonlinear, of
  // all that mixes (largest singular value) where it is a matrix. Inputs are bounded by 16.
  double smallest_decay = 1;
  double write_forget_correlation =
      0;                         // of ranks, over inputs of one norm (4 or 16 sqrt d); mean over heads or channels
  double off_diagonal_mass = 0;  // share of |J| outside the diagonal
};

// The configuration a probe builds: the mixer at width 16 with 2 heads and 16 states, switches as asked for.
ModelConfig probe_config(const std::string& model, const Switches& switches = {});
Measured probe(const std::string& model, const Switches& switches = {}, uint64_t seed = 1);
// The declared row of the layer that probe() builds.
Taxonomy declared_row(const std::string& model, const Switches& switches = {});

}  // namespace sb
