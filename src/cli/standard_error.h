// Standard error as people see it, on a terminal or not.
#pragma once
#include "jobs/console.h"

namespace sb::cli {

Console standard_error();

}  // namespace sb::cli
