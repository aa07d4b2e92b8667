// Works on a suite: a process for each missing run.
#pragma once
#include "base/error.h"
#include "jobs/host.h"
#include "jobs/suite_options.h"
#include "jobs/suite_overview.h"

namespace sb {

// Runs all missing runs. `overview` must describe the same suite and have rates for estimates.
Exit work_on_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, Overview overview,
                   const Host& host);

}  // namespace sb
