// What can be reached: the exact ceiling, the filter's beliefs, and what can be had without a network.
#pragma once
#include "tasks/baselines.h"
#include "tasks/ceiling.h"
#include "tasks/filter.h"
