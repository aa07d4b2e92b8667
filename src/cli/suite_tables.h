// The tables of a suite.
#pragma once
#include "cli/suite_options.h"
#include "store/known_runs.h"
#include "suites/suite.h"

namespace sb::cli {

// Writes ROOT/TABLE.{txt,md,csv,json,tex} from the finished runs of the suite and prints the text. Writes nothing if no
// run is finished; prints nothing after a request to stop.
void write_suite_tables(const SuiteOptions& options, const Suite& suite, const ModelRules& rules,
                        const KnownRuns& known);

}  // namespace sb::cli
