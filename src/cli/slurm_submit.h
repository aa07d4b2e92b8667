// `suite --slurm`: what is missing of a suite handed to Slurm, once.
#pragma once
#include "base/error.h"
#include "cli/suite_session.h"
#include "runs/known_runs.h"

namespace sb::cli {

// Runs that have a result, or are queued, are left alone. Says on standard error what was submitted. Throws
// no_scheduler where Slurm does not do it.
Exit submit_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known);

}  // namespace sb::cli
