// Sizes of networks, for estimates of time.
#pragma once
#include "jobs/suite_overview.h"

namespace sb::cli {

Size size_of(const ResolvedConfig& run);  // zeros if there is no such network
// The shipped table of rates, with the FLOPs of the measured networks.
CostTable shipped_costs();

}  // namespace sb::cli
