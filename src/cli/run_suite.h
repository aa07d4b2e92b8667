// Runs a suite: starts a process for each missing run, then makes the table.
#pragma once
#include "base/error.h"
#include "jobs/suite_options.h"
#include "suites/suite.h"

namespace sb::cli {

// Depending on the options: lists the runs, shows their status, submits missing runs to Slurm, or runs them and writes
// ROOT/TABLE.{txt,md,csv,json,tex}.
Exit run_suite(const SuiteOptions& options, Suite suite, const ModelRules& rules);

}  // namespace sb::cli
