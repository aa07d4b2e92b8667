// The tables of a suite.
#pragma once
#include "jobs/host.h"
#include "jobs/suite_options.h"
#include "store/known_runs.h"
#include "suites/suite.h"

namespace sb {

// Writes ROOT/TABLE.{txt,md,csv,json,tex} from the finished runs of the suite and prints the text. Writes nothing if no
// run is finished; prints nothing after a request to stop.
void write_suite_tables(const SuiteOptions& options, const Suite& suite, const ModelRules& rules,
                        const KnownRuns& known, const Host& host);

}  // namespace sb
