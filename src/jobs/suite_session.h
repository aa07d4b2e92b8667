// Works on a suite: a process for each missing run.
#pragma once
#include "base/error.h"
#include "jobs/host.h"
#include "jobs/suite_options.h"
#include "jobs/suite_overview.h"

namespace sb {

// How the missing runs of a suite share the machine.
struct Division {
  int jobs = 1;     // runs at a time
  int threads = 1;  // of each
};
Division divide(const SuiteOptions& options, const Suite& suite, const Overview& overview);
// Sets Overview::sharing and Overview::threads, on which its estimates depend.
void share_machine(Overview& overview, const SuiteOptions& options, const Division& division);

// Runs all missing runs. `overview` must describe the same suite and have rates for estimates.
Exit work_on_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, Overview overview,
                   const Host& host);

}  // namespace sb
