// A suite at work: what is missing is run in processes of its own, then its table is made.
#pragma once
#include "base/error.h"
#include "cli/suite_options.h"
#include "runs/suite.h"

namespace sb::cli {

// Lists the runs, says where they stand, hands those that are missing to Slurm, or works on them and writes
// ROOT/TABLE.{txt,md,csv,json,tex}.
Exit run_suite(const SuiteOptions& options, Suite suite, const ModelRules& rules);

}  // namespace sb::cli
