// The parts of a result that are not measured.
#pragma once
#include "train/run_context.h"

namespace sb {

// Result of the run so far with the given status, without measurements.
Result result_of(const RunContext& run, const char* status);
Provenance made_by(const RunContext& run);

}  // namespace sb
