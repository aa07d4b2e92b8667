// `suite --slurm`: submits the missing runs of a suite to Slurm, each once.
#pragma once
#include "base/error.h"
#include "cli/suite_session.h"
#include "store/known_runs.h"

namespace sb::cli {

// Skips runs that have a result or are queued. Reports on standard error what was submitted. Throws no_scheduler if
// Slurm fails.
Exit submit_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known);

}  // namespace sb::cli
