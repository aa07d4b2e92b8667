// The rounded lognormal distribution in integers. The functions use IEEE +, -, *, / in a fixed order and no
// mathematical library, so every machine computes the same table.
#pragma once
#include <cstdint>
#include <vector>

#include "tasks/task_config.h"

namespace sb {

double portable_normal_cdf(double x);  // any finite x

// Entry k = round(2^32 P(n <= min + k)) for min + k < max, ascending.
std::vector<uint64_t> lognormal_thresholds(const GapConfig& gap);

}  // namespace sb
