// What a result says of its run beside what was measured.
#pragma once
#include "train/run_context.h"

namespace sb {

// The run so far, with this status and no measurement.
Result result_of(const RunContext& run, const char* status);
Provenance made_by(const RunContext& run);

}  // namespace sb
