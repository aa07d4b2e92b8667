// The rounded lognormal law in integers. The functions use IEEE +, -, *, / in a fixed order and nothing of the
// machine's mathematical library, so the table is the same everywhere.
#pragma once
#include <cstdint>
#include <vector>

#include "tasks/task_config.h"

namespace sb {

double portable_normal_cdf(double x);  // any finite x

// Entry k = round(2^32 P(n <= min + k)) for min + k < max, ascending.
std::vector<uint64_t> lognormal_thresholds(const GapConfig& gap);

}  // namespace sb
