// What made a result: program, libraries, machine.
#pragma once
#include "runs/result.h"

namespace sb {

// Everything but the times, which are the run's.
Provenance provenance();

}  // namespace sb
