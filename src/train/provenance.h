// Provenance of a result: program, libraries and machine.
#pragma once
#include "store/result.h"

namespace sb {

// Fills everything that depends only on program and machine; `device` is "cpu". The caller adds the GPU's name, times,
// and what depends on the run.
Provenance provenance();

}  // namespace sb
