// What made a result: program, libraries, machine.
#pragma once
#include "runs/result.h"

namespace sb {

// Everything but the times, which are the run's.
Provenance provenance();
std::string utc_now();  // 2026-01-31T12:00:00Z

}  // namespace sb
