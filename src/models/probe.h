// Measures a model's taxonomy numerically, to check the declared one: builds a small layer and computes its state
// Jacobian J = dS_t/dS_{t-1}.
#pragma once
#include "models/options.h"
#include "models/registry.h"

namespace sb {

struct Measured {
  Taxonomy row;  // the classification by these measurements; state_elements is that of the probed layer
  // Smallest share of the state that one step kept, over all inputs tried (bounded by 16). If A is a matrix: the
  // largest singular value of a block of mixed elements. Otherwise: the factor of one element.
  double smallest_decay = 1;
  // Measured over inputs of norm 4 sqrt(d), then 16 sqrt(d); the larger value in magnitude counts.
  double write_forget_correlation =
      0;  // rank correlation of what a frame writes and what it forgets; mean over heads or channels
  double off_diagonal_mass = 0;  // largest share of |J| outside the diagonal
};

// The configuration that probe() builds: one layer of width 16. Unless `switches` sets them, heads is 2, d_state 16 and
// expand_v 1.
ModelConfig probe_config(const std::string& model, const Switches& switches = {});
Measured probe(const std::string& model, const Switches& switches = {}, uint64_t seed = 1);
// The declared taxonomy of the layer that probe() builds.
Taxonomy declared_row(const std::string& model, const Switches& switches = {});

}  // namespace sb
