// `suite --slurm`: submits the missing runs of a suite to Slurm, each once.
#pragma once
#include "base/error.h"
#include "jobs/host.h"
#include "jobs/suite_options.h"
#include "store/known_runs.h"
#include "suites/suite.h"

namespace sb {

// Skips runs that have a result or are queued. Reports what was submitted. Throws no_scheduler if
// Slurm fails.
Exit submit_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, const Host& host);

}  // namespace sb
