// Provenance of a result: program, libraries and machine.
#pragma once
#include "store/result.h"

namespace sb {

// Fills everything but the times, which the run adds.
Provenance provenance();

}  // namespace sb
